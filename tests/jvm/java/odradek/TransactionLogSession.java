package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Apache Kafka's own log of one partition with transactions, as the oracle of ours: appends, markers, verification, high
 * watermark, truncation. A call per line on standard input, an answer per line on standard output, both JSON.
 */
public final class TransactionLogSession {
    private static final int HOUR_MS = 3_600_000;
    private static final int DAYS_MS = 20 * 24 * HOUR_MS;

    private final KafkaScheduler scheduler = new KafkaScheduler(1);
    private final List<VerificationGuard> guards = new ArrayList<>();
    private UnifiedLog log;

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TransactionLogSession session = new TransactionLogSession();
        session.scheduler.startup();
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            answers.println(mapper.writeValueAsString(session.answer(mapper.readTree(line))));
        }
        session.scheduler.shutdown();
    }

    private Map<String, Object> answer(JsonNode call) throws IOException {
        Map<String, Object> answer = new TreeMap<>();
        answer.put("error", "NONE");
        try {
            run(call, answer);
        } catch (RuntimeException problem) {
            Errors error = Errors.forException(problem);
            if (error == Errors.UNKNOWN_SERVER_ERROR) {
                answer.put("problem", problem.toString());
            }
            answer.put("error", error.name());
        }
        if (log != null) {
            describe(answer);
        }
        return answer;
    }

    private void run(JsonNode call, Map<String, Object> answer) throws IOException {
        switch (call.get("op").asText()) {
            case "open" -> open(call);
            case "append" -> answer.put("base_offset", append(call).firstOffset());
            case "marker" -> answer.put("base_offset", appendMarker(call).firstOffset());
            case "verify" -> answer.put("guard", verify(call));
            case "high_watermark" -> log.updateHighWatermark(call.get("offset").asLong());
            case "roll" -> log.roll();
            case "truncate" -> log.truncateTo(call.get("offset").asLong());
            case "delete_before" -> log.maybeIncrementLogStartOffset(
                call.get("offset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "aborted" -> answer.put("aborted", aborted(call.get("first").asLong(), call.get("end").asLong()));
            default -> throw new IllegalArgumentException(call.toString());
        }
    }

    private void open(JsonNode call) throws IOException {
        if (log != null && log.dir().getPath().equals(call.get("directory").asText())) {
            log.close();
        }
        LogConfig config = new LogConfig(Map.of(
            "internal.segment.bytes", call.get("segment_bytes").asInt(), "message.timestamp.after.max.ms", Long.MAX_VALUE));
        log = UnifiedLog.create(
            new File(call.get("directory").asText()), config, call.path("log_start_offset").asLong(0L), 0L, scheduler, new BrokerTopicStats(), Time.SYSTEM,
            HOUR_MS, new ProducerStateManagerConfig(DAYS_MS, true), HOUR_MS, new LogDirFailureChannel(1), true,
            Optional.empty());
    }

    private LogAppendInfo append(JsonNode call) {
        MemoryRecords records = MemoryRecords.readableRecords(
            ByteBuffer.wrap(HexFormat.of().parseHex(call.get("batch").asText())));
        AppendOrigin origin = AppendOrigin.valueOf(call.get("origin").asText());
        int guard = call.get("guard").asInt();
        return log.appendAsLeader(
            records, 0, origin, RequestLocal.noCaching(), guard < 0 ? VerificationGuard.SENTINEL : guards.get(guard),
            TransactionVersion.TV_UNKNOWN);
    }

    private LogAppendInfo appendMarker(JsonNode call) {
        ControlRecordType type = ControlRecordType.valueOf(call.get("type").asText());
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(
            call.get("producer_id").asLong(), (short) call.get("producer_epoch").asInt(),
            new EndTransactionMarker(type, call.get("coordinator_epoch").asInt()));
        return log.appendAsLeader(
            records, 0, AppendOrigin.COORDINATOR, RequestLocal.noCaching(), VerificationGuard.SENTINEL,
            (short) call.get("transaction_version").asInt());
    }

    /** The number of a guard that later calls name; -1 for the one that stands for an open transaction. */
    private int verify(JsonNode call) {
        VerificationGuard guard = log.maybeStartTransactionVerification(
            call.get("producer_id").asLong(), call.get("sequence").asInt(), (short) call.get("producer_epoch").asInt(),
            call.get("supports_epoch_bump").asBoolean());
        if (guard.equals(VerificationGuard.SENTINEL)) {
            return -1;
        }
        guards.add(guard);
        return guards.indexOf(guard);
    }

    private List<List<Long>> aborted(long firstOffset, long endOffset) {
        return log.collectAbortedTransactions(firstOffset, endOffset).stream()
            .map(each -> List.of(each.firstOffset(), each.producerId(), each.lastOffset(), each.lastStableOffset()))
            .toList();
    }

    private void describe(Map<String, Object> answer) {
        answer.put("log_start_offset", log.logStartOffset());
        answer.put("log_end_offset", log.logEndOffset());
        answer.put("high_watermark", log.highWatermark());
        answer.put("last_stable_offset", log.lastStableOffset());
        answer.put("producers", log.activeProducers().stream()
            .map(each -> List.of(
                each.producerId(), each.producerEpoch(), each.lastSequence(), each.coordinatorEpoch(),
                each.currentTxnStartOffset()))
            .toList());
    }
}
