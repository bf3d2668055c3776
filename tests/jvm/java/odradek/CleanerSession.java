package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Apache Kafka's own log cleaner on the directory of a partition: what it leaves there is the oracle of ours. A call per
 * line on standard input, an answer per line on standard output, both JSON.
 */
public final class CleanerSession {
    private static final int HOUR_MS = 3_600_000;

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            Map<String, Object> answer;
            try {
                answer = clean(mapper.readTree(line), scheduler);
            } catch (RuntimeException problem) {
                answer = Map.of("problem", problem.toString());
            }
            answers.println(mapper.writeValueAsString(answer));
        }
        scheduler.shutdown();
    }

    private static Map<String, Object> clean(JsonNode call, KafkaScheduler scheduler) throws Exception {
        LogConfig config = new LogConfig(Map.of(
            "cleanup.policy", "compact",
            "internal.segment.bytes", call.get("segment_bytes").asInt(),
            "delete.retention.ms", call.get("delete_retention_ms").asLong(),
            "file.delete.delay.ms", 0L));
        UnifiedLog log = UnifiedLog.create(
            new File(call.get("directory").asText()), config, 0L, 0L, scheduler, new BrokerTopicStats(), Time.SYSTEM,
            HOUR_MS, new ProducerStateManagerConfig(24 * HOUR_MS, false), HOUR_MS, new LogDirFailureChannel(1), true,
            Optional.empty());
        long endOffset = log.activeSegment().baseOffset();
        Consumer<TopicPartition> neverAborted = partition -> { };
        int memory = call.get("memory_bytes").asInt();
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(memory), 512 * 1024, 64 * 1024 * 1024, 0.9,
            new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner-io", "bytes", Time.SYSTEM), Time.SYSTEM,
            neverAborted);
        long started = System.nanoTime();
        long cleaned = cleaner.doClean(
            new LogToClean(log, call.get("clean_offset").asLong(), endOffset, false), call.get("now_ms").asLong()).getKey();
        double seconds = (System.nanoTime() - started) / 1e9;
        log.close();
        return Map.of("clean_offset", cleaned, "seconds", seconds);
    }
}
