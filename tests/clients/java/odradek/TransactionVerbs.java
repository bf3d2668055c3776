package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;

/** The scenario's verbs of transactions. */
final class TransactionVerbs {
    private static final byte[] COPY_PREFIX = "copy of ".getBytes(StandardCharsets.ISO_8859_1);
    private static final long PATIENCE_MS = 20_000;
    private final String bootstrapServers;
    private final Admin admin;

    TransactionVerbs(String bootstrapServers, Admin admin) {
        this.bootstrapServers = bootstrapServers;
        this.admin = admin;
    }

    void addTo(Map<String, ClientDriver.Verb> verbs) {
        verbs.put("produce_in_transaction", this::produceInTransaction);
        verbs.put("alternate", this::alternate);
        verbs.put("copy", this::copy);
        verbs.put("committed", this::committed);
        verbs.put("fence", this::fence);
    }

    private Producer<byte[], byte[]> producer(JsonNode arguments) {
        Map<String, Object> configs = ClientSecurity.properties(bootstrapServers);
        configs.put("transactional.id", arguments.get("transactional_id").asText());
        configs.put("linger.ms", 20);
        Producer<byte[], byte[]> producer =
            new KafkaProducer<>(configs, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        return producer;
    }

    private static List<Long> send(Producer<byte[], byte[]> producer, JsonNode arguments, Iterable<JsonNode> records)
            throws Exception {
        String topic = arguments.get("topic").asText();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode each : records) {
            byte[] key = RecordVerbs.writtenBytes(each.get("key"));
            byte[] value = RecordVerbs.writtenBytes(each.get("value"));
            sent.add(producer.send(new ProducerRecord<>(
                topic, arguments.get("partition").asInt(), each.get("timestamp").asLong(), key, value)));
        }
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            offsets.add(each.get().offset());
        }
        return offsets;
    }

    private static void end(Producer<byte[], byte[]> producer, boolean commits) {
        if (commits) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    private Object produceInTransaction(JsonNode arguments) throws Exception {
        try (Producer<byte[], byte[]> producer = producer(arguments)) {
            producer.beginTransaction();
            List<Long> offsets = send(producer, arguments, arguments.get("records"));
            end(producer, arguments.get("commits").asBoolean());
            return Map.of("offsets", offsets);
        }
    }

    /** Each round commits a transaction and aborts the next one, without a pause between them. */
    private Object alternate(JsonNode arguments) {
        String topic = arguments.get("topic").asText();
        int rounds = arguments.get("rounds").asInt();
        try (Producer<byte[], byte[]> producer = producer(arguments)) {
            for (int round = 0; round < rounds; round++) {
                for (boolean commits : new boolean[] {true, false}) {
                    byte[] value = (commits ? "kept" : "dropped").getBytes(StandardCharsets.ISO_8859_1);
                    producer.beginTransaction();
                    for (int partition = 0; partition < arguments.get("partitions").asInt(); partition++) {
                        producer.send(new ProducerRecord<>(topic, partition, null, value));
                    }
                    end(producer, commits);
                }
            }
        }
        return Map.of("rounds", rounds);
    }

    private Object copy(JsonNode arguments) {
        int count = arguments.get("count").asInt();
        String topic = arguments.get("topic").asText();
        Map<String, Object> configs = ClientSecurity.properties(bootstrapServers);
        configs.put("group.id", arguments.get("group").asText());
        configs.put("auto.offset.reset", "earliest");
        configs.put("enable.auto.commit", false);
        configs.put("isolation.level", "read_committed");
        configs.put("max.poll.records", count);
        try (Producer<byte[], byte[]> producer = producer(arguments);
             var consumer = new KafkaConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            while (records.size() < count && System.currentTimeMillis() < deadline) {
                consumer.poll(Duration.ofMillis(500)).forEach(records::add);
            }
            records = records.subList(0, Math.min(count, records.size()));
            producer.beginTransaction();
            for (ConsumerRecord<byte[], byte[]> each : records) {
                ByteArrayOutputStream value = new ByteArrayOutputStream();
                value.writeBytes(COPY_PREFIX);
                value.writeBytes(each.value());
                producer.send(new ProducerRecord<>(
                    arguments.get("target").asText(), 0, each.timestamp(), each.key(), value.toByteArray()));
            }
            producer.flush(); // an abort would discard what is not sent
            long next = records.get(records.size() - 1).offset() + 1;
            producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(next)), consumer.groupMetadata());
            end(producer, arguments.get("commits").asBoolean());
            return Map.of("copied", records.size());
        }
    }

    private Object committed(JsonNode arguments) throws Exception {
        String group = arguments.get("group").asText();
        var partition = new TopicPartition(arguments.get("topic").asText(), arguments.get("partition").asInt());
        OffsetAndMetadata found =
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition);
        return Collections.singletonMap("offset", found == null ? null : found.offset());
    }

    private Object fence(JsonNode arguments) throws Exception {
        try (Producer<byte[], byte[]> fenced = producer(arguments)) {
            fenced.beginTransaction();
            send(fenced, arguments, List.of(arguments.get("records").get(0)));
            try (Producer<byte[], byte[]> next = producer(arguments)) {
                next.beginTransaction();
                send(next, arguments, List.of(arguments.get("records").get(1)));
                next.commitTransaction();
            }
            try {
                fenced.commitTransaction();
            } catch (KafkaException refused) {
                return Map.of("error", "NONE");
            }
        }
        return Map.of("error", "the fenced producer could commit");
    }
}
