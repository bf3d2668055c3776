package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

/**
 * What Apache Kafka's own generated classes make of the bytes of a message, or of a record of a group coordinator: the
 * values in them as JSON, and the bytes that they write for these values. A call per line on standard input, an answer per
 * line on standard output, both JSON.
 */
public final class MessageSession {
    private static final GroupCoordinatorRecordSerde RECORDS = new GroupCoordinatorRecordSerde();

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            JsonNode call = mapper.readTree(line);
            Map<String, Object> answer;
            try {
                answer = call.has("key") ? readRecord(call) : readMessage(call);
            } catch (RuntimeException problem) {
                answer = Map.of("problem", problem.toString());
            }
            answers.println(mapper.writeValueAsString(answer));
        }
    }

    /** Without bytes: a new message, for its defaults. */
    private static Map<String, Object> readMessage(JsonNode call) throws Exception {
        String name = call.get("class").asText();
        short version = (short) call.get("version").asInt();
        ByteBuffer bytes = bytesOf(call.get("bytes"));
        ApiMessage message = (ApiMessage) Class.forName(name).getConstructor().newInstance();
        if (bytes != null) {
            message.read(new ByteBufferAccessor(bytes), version);
        }
        ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] again = new byte[written.remaining()];
        written.get(again);
        Object values = Class.forName(name + "JsonConverter")
            .getMethod("write", message.getClass(), short.class)
            .invoke(null, message, version);
        return Map.of(
            "values", values,
            "bytes", HexFormat.of().formatHex(again),
            "left", bytes == null ? 0 : bytes.remaining(),
            "api_key", message.apiKey(),
            "versions", new short[] {message.lowestSupportedVersion(), message.highestSupportedVersion()});
    }

    private static Map<String, Object> readRecord(JsonNode call) {
        ByteBuffer key = bytesOf(call.get("key"));
        ByteBuffer value = bytesOf(call.get("value"));
        CoordinatorRecord record = RECORDS.deserialize(key, value);
        Map<String, Object> answer = new HashMap<>();
        answer.put("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
        answer.put("key_bytes", HexFormat.of().formatHex(RECORDS.serializeKey(record)));
        answer.put("type", record.key().apiKey());
        if (value != null) {
            answer.put("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(
                record.value().message(), record.value().version()));
            answer.put("value_bytes", HexFormat.of().formatHex(RECORDS.serializeValue(record)));
        }
        return answer;
    }

    private static ByteBuffer bytesOf(JsonNode hex) {
        return hex == null || hex.isNull() ? null : ByteBuffer.wrap(HexFormat.of().parseHex(hex.asText()));
    }
}
