package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.CRC32;

/** The scenario's verbs that produce and consume. No consumer group anywhere: partitions are assigned by hand. */
final class RecordVerbs {
    private static final int LONG_BYTES = 100;
    private static final long PATIENCE_MS = 20_000;
    private final String bootstrapServers;

    RecordVerbs(String bootstrapServers) {
        this.bootstrapServers = bootstrapServers;
    }

    void addTo(Map<String, ClientDriver.Verb> verbs) {
        verbs.put("produce", this::produce);
        verbs.put("consume", this::consume);
        verbs.put("consume_new", this::consumeNew);
        verbs.put("read_to_ends", this::readToEnds);
    }

    static byte[] writtenBytes(JsonNode value) {
        if (value.isNull()) {
            return null;
        }
        if (value.isObject()) {
            byte[] filled = new byte[value.get("length").asInt()];
            Arrays.fill(filled, (byte) value.get("fill").asText().charAt(0));
            return filled;
        }
        return value.asText().getBytes(StandardCharsets.ISO_8859_1);
    }

    private static Object shownBytes(byte[] data) {
        if (data == null) {
            return null;
        }
        if (data.length > LONG_BYTES) {
            CRC32 crc = new CRC32();
            crc.update(data);
            return Map.of("length", data.length, "crc32", crc.getValue());
        }
        return new String(data, StandardCharsets.ISO_8859_1);
    }

    private Object produce(JsonNode arguments) throws Exception {
        Map<String, Object> configs = ClientSecurity.properties(bootstrapServers);
        configs.put("compression.type", arguments.get("codec").asText());
        configs.put("acks", arguments.get("acks").asText());
        configs.put("enable.idempotence", arguments.get("idempotent").asBoolean());
        configs.put("max.request.size", 4_000_000);
        configs.put("linger.ms", 20);
        configs.put("delivery.timeout.ms", 20_000);
        configs.put("request.timeout.ms", 10_000);
        String topic = arguments.get("topic").asText();
        int partition = arguments.get("partition").asInt();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        List<Object> answers = new ArrayList<>();
        try (Producer<byte[], byte[]> producer =
                 new KafkaProducer<>(configs, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (JsonNode each : arguments.get("records")) {
                Long timestamp = each.get("timestamp").isNull() ? null : each.get("timestamp").asLong();
                byte[] key = writtenBytes(each.get("key"));
                var record = new ProducerRecord<>(topic, partition, timestamp, key, writtenBytes(each.get("value")));
                for (JsonNode header : each.get("headers")) {
                    record.headers().add(header.get(0).asText(), writtenBytes(header.get(1)));
                }
                sent.add(producer.send(record));
            }
            producer.flush();
            for (Future<RecordMetadata> each : sent) {
                answers.add(acknowledged(each));
            }
        }
        return answers;
    }

    private static Object acknowledged(Future<RecordMetadata> sent) {
        Map<String, Object> answer = new HashMap<>();
        try {
            RecordMetadata metadata = sent.get();
            answer.put("offset", metadata.hasOffset() ? metadata.offset() : null);
        } catch (Exception failure) {
            answer.put("error", ClientDriver.errorName(failure));
        }
        return answer;
    }

    private Consumer<byte[], byte[]> consumer(String reset, String isolation) {
        return consumer(reset, isolation, Map.of());
    }

    private Consumer<byte[], byte[]> consumer(String reset, String isolation, Map<String, Object> more) {
        Map<String, Object> configs = ClientSecurity.properties(bootstrapServers);
        configs.putAll(more);
        configs.put("auto.offset.reset", reset);
        configs.put("isolation.level", isolation);
        configs.put("enable.auto.commit", false);
        configs.put("allow.auto.create.topics", false);
        return new KafkaConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private Object consume(JsonNode arguments) {
        String topic = arguments.get("topic").asText();
        String isolation = arguments.path("isolation").asText("read_uncommitted");
        try (Consumer<byte[], byte[]> consumer = consumer(arguments.get("reset").asText(), isolation)) {
            Map<TopicPartition, JsonNode> starts = new LinkedHashMap<>();
            for (JsonNode each : arguments.get("assignments")) {
                starts.put(new TopicPartition(topic, each.get(0).asInt()), each.get(1));
            }
            consumer.assign(starts.keySet());
            starts.forEach((partition, start) -> seek(consumer, partition, start));
            return Map.of("records", poll(consumer, arguments.get("count").asInt()));
        }
    }

    private static void seek(Consumer<byte[], byte[]> consumer, TopicPartition partition, JsonNode start) {
        if (start.isObject()) {
            long timestamp = start.get("timestamp").asLong();
            consumer.seek(partition, consumer.offsetsForTimes(Map.of(partition, timestamp)).get(partition).offset());
        } else if (start.isNumber()) {
            consumer.seek(partition, start.asLong());
        } else {
            consumer.seekToBeginning(List.of(partition));
        }
    }

    private Object consumeNew(JsonNode arguments) throws Exception {
        TopicPartition partition = new TopicPartition(arguments.get("topic").asText(), arguments.get("partition").asInt());
        try (Consumer<byte[], byte[]> consumer = consumer("none", "read_uncommitted")) {
            consumer.assign(List.of(partition));
            consumer.seekToEnd(List.of(partition));
            consumer.position(partition);
            var copy = (com.fasterxml.jackson.databind.node.ObjectNode) arguments.deepCopy();
            copy.put("codec", "none").put("acks", -1).put("idempotent", false);
            produce(copy);
            return Map.of("records", poll(consumer, arguments.get("records").size()));
        }
    }

    private static List<Object> poll(Consumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (records.size() < count && System.currentTimeMillis() < deadline) {
            consumer.poll(Duration.ofMillis(500)).forEach(records::add);
        }
        Comparator<ConsumerRecord<byte[], byte[]>> byPartition = Comparator.comparingInt(ConsumerRecord::partition);
        records.sort(byPartition.thenComparingLong(ConsumerRecord::offset));
        List<Object> shown = new ArrayList<>();
        records.forEach(each -> shown.add(shown(each)));
        return shown;
    }

    /** Each partition from its first offset to its end, until an error, or until nothing comes for `quiet_ms` after a record. */
    private Object readToEnds(JsonNode arguments) {
        String topic = arguments.get("topic").asText();
        Map<TopicPartition, Long> ends = new LinkedHashMap<>();
        arguments.get("ends").forEach(each -> ends.put(new TopicPartition(topic, each.get(0).asInt()), each.get(1).asLong()));
        Map<Integer, List<Object>> records = new HashMap<>();
        Map<Integer, String> errors = new HashMap<>();
        Map<String, Object> settings = Map.of("max.partition.fetch.bytes", arguments.get("fetch_bytes").asInt());
        Consumer<byte[], byte[]> consumer = consumer("none", "read_uncommitted", settings);
        try {
            consumer.assign(ends.keySet());
            ends.keySet().forEach(partition -> consumer.seek(partition, 0));
            long quietMs = arguments.get("quiet_ms").asLong();
            long end = System.currentTimeMillis() + PATIENCE_MS;
            for (long heard = end - quietMs; heard + quietMs > System.currentTimeMillis() && !ends.isEmpty(); ) {
                try {
                    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(100))) {
                        records.computeIfAbsent(each.partition(), key -> new ArrayList<>())
                            .add(Arrays.asList(each.offset(), shownBytes(each.value())));
                        heard = Math.min(end, System.currentTimeMillis());
                    }
                } catch (KafkaException failure) {
                    heard = Math.min(end, System.currentTimeMillis());
                    Matcher named = Pattern.compile(Pattern.quote(topic) + "-(\\d+)").matcher(failure.getMessage());
                    if (!named.find()) {
                        throw failure;
                    }
                    TopicPartition partition = new TopicPartition(topic, Integer.parseInt(named.group(1)));
                    errors.put(partition.partition(), "at " + consumer.position(partition) + ": " + failure);
                    ends.remove(partition);
                    consumer.pause(List.of(partition));
                }
                ends.entrySet().removeIf(each -> consumer.position(each.getKey()) >= each.getValue());
            }
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ofMillis(PATIENCE_MS)));
        }
        return Map.of("records", records, "errors", errors);
    }

    private static Object shown(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("partition", record.partition());
        shown.put("offset", record.offset());
        shown.put("timestamp", record.timestamp());
        shown.put("timestamp_type", record.timestampType().name());
        shown.put("key", shownBytes(record.key()));
        shown.put("value", shownBytes(record.value()));
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(Arrays.asList(header.key(), shownBytes(header.value())));
        }
        shown.put("headers", headers);
        shown.put("leader_epoch", record.leaderEpoch().orElse(null));
        return shown;
    }
}
