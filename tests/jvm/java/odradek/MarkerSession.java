package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;

/**
 * The control batches that Apache Kafka writes at the end of transactions. The fields of a marker per line on standard
 * input, the bytes of its batch per line on standard output, both JSON.
 */
public final class MarkerSession {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            answers.println(mapper.writeValueAsString(Map.of("batch", build(mapper.readTree(line)))));
        }
    }

    private static String build(JsonNode call) {
        ControlRecordType type = ControlRecordType.valueOf(call.get("type").asText());
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(
            call.get("base_offset").asLong(),
            call.get("timestamp").asLong(),
            call.get("leader_epoch").asInt(),
            call.get("producer_id").asLong(),
            (short) call.get("producer_epoch").asInt(),
            new EndTransactionMarker(type, call.get("coordinator_epoch").asInt()));
        ByteBuffer buffer = records.buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
