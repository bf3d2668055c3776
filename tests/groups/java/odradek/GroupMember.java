package odradek;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A group member that uses Apache Kafka's Java client; tests/groups/members documents its settings and reports. */
public final class GroupMember implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "RangeAssignor", "roundrobin", "RoundRobinAssignor",
        "sticky", "StickyAssignor", "cooperative-sticky", "CooperativeStickyAssignor");

    private final ObjectMapper mapper = new ObjectMapper();
    private final PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private volatile boolean leaving;
    private volatile boolean failed = true; // until it has left

    public static void main(String[] args) throws Exception {
        JsonNode options = new ObjectMapper().readTree(args[0]);
        GroupMember member = new GroupMember();
        Thread life = Thread.currentThread();
        endWithInput();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            member.leaving = true;
            try {
                life.join();
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(member.failed ? 1 : 0); // a JVM ended by a signal would say 143
        }));
        member.report("started", Map.of());
        member.live(options);
    }

    private static void endWithInput() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException closed) {
                // the end, too
            }
            Runtime.getRuntime().halt(1);
        });
        watch.setDaemon(true);
        watch.start();
    }

    private static Map<String, Object> clientSettings(JsonNode options) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", options.get("servers").asText(),
            "group.id", options.get("group").asText(),
            "client.id", options.get("name").asText(),
            "group.protocol", options.get("protocol").asText(),
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "max.poll.records", options.get("batch").asText()));
        if (options.get("protocol").asText().equals("consumer")) {
            settings.put("group.remote.assignor", options.get("assignor").asText());
        } else {
            settings.put("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer." + ASSIGNORS.get(options.get("assignor").asText()));
            settings.put("session.timeout.ms", options.get("session_ms").asText());
            settings.put("heartbeat.interval.ms", options.get("heartbeat_ms").asText());
        }
        options.get("client").forEach(each -> settings.put(each.get(0).asText(), each.get(1).asText()));
        return settings;
    }

    private void live(JsonNode options) throws InterruptedException {
        List<String> topics = new ArrayList<>();
        options.get("topics").forEach(each -> topics.add(each.asText()));
        var strings = new StringDeserializer();
        try (var consumer = new KafkaConsumer<String, String>(clientSettings(options), strings, strings)) {
            consumer.subscribe(topics, this);
            while (!leaving) {
                ConsumerRecords<String, String> records = consumer.poll(POLL);
                if (records.isEmpty()) {
                    continue;
                }
                Map<TopicPartition, OffsetAndMetadata> offsets = process(records);
                Thread.sleep(options.get("commit_pause_ms").asLong());
                commit(consumer, offsets);
            }
        }
        report("left", Map.of());
        failed = false;
    }

    /** Processing a batch is reporting it. */
    private Map<TopicPartition, OffsetAndMetadata> process(ConsumerRecords<String, String> records) {
        List<List<Object>> runs = new ArrayList<>();
        Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<>();
        for (TopicPartition partition : records.partitions()) {
            long first = -1;
            long expected = -1;
            for (ConsumerRecord<String, String> record : records.records(partition)) {
                if (Long.parseLong(record.value()) != record.offset()) {
                    throw new IllegalStateException(record.value() + " at offset " + record.offset() + " of " + partition);
                }
                if (record.offset() != expected) {
                    if (first >= 0) {
                        runs.add(List.of(partition.topic(), partition.partition(), first, expected));
                    }
                    first = record.offset();
                }
                expected = record.offset() + 1;
            }
            runs.add(List.of(partition.topic(), partition.partition(), first, expected));
            offsets.put(partition, new OffsetAndMetadata(expected));
        }
        report("processed", Map.of("runs", runs));
        return offsets;
    }

    private void commit(KafkaConsumer<String, String> consumer, Map<TopicPartition, OffsetAndMetadata> offsets) {
        try {
            consumer.commitSync(offsets);
        } catch (KafkaException refused) {
            report("refused", Map.of("error", refused.getClass().getSimpleName()));
            return;
        }
        List<List<Object>> committed = new ArrayList<>();
        offsets.forEach((partition, offset) ->
            committed.add(List.of(partition.topic(), partition.partition(), offset.offset())));
        report("committed", Map.of("offsets", committed));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        reportPartitions("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        reportPartitions("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        reportPartitions("lost", partitions);
    }

    private void reportPartitions(String event, Collection<TopicPartition> partitions) {
        List<List<Object>> reported = new ArrayList<>();
        partitions.forEach(each -> reported.add(List.of(each.topic(), each.partition())));
        report(event, Map.of("partitions", reported));
    }

    private void report(String event, Map<String, Object> details) {
        Map<String, Object> line = new LinkedHashMap<>(details);
        line.put("event", event);
        try {
            output.println(mapper.writeValueAsString(line));
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
