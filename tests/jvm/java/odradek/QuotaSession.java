package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import kafka.server.ClientRequestQuotaManager;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Apache Kafka's quota managers. A kind of quota, its windows and events per line on standard input; the throttle time
 * of each event per line on standard output, both JSON.
 */
public final class QuotaSession {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            answers.println(mapper.writeValueAsString(Map.of("throttles", replay(mapper.readTree(line)))));
        }
    }

    private static List<Long> replay(JsonNode call) throws Exception {
        String kind = call.get("kind").asText();
        SettableTime time = new SettableTime();
        ClientQuotaManagerConfig config =
            new ClientQuotaManagerConfig(call.get("samples").asInt(), call.get("windowSeconds").asInt());
        try (Metrics metrics = new Metrics(time)) {
            ClientQuotaManager manager = switch (kind) {
                case "request" -> new ClientRequestQuotaManager(config, metrics, time, "", Optional.empty());
                case "strict", "permissive" ->
                    new ControllerMutationQuotaManager(config, metrics, time, "", Optional.empty());
                default -> new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, time, "");
            };
            try {
                List<Long> throttles = new ArrayList<>();
                for (JsonNode event : call.get("events")) {
                    time.nowMs = event.get("at").asLong();
                    throttles.add(apply(kind, manager, event, time.nowMs));
                }
                return throttles;
            } finally {
                manager.shutdown();
            }
        }
    }

    private static long apply(String kind, ClientQuotaManager manager, JsonNode event, long nowMs) throws Exception {
        if (event.has("limit")) {
            JsonNode limit = event.get("limit");
            manager.updateQuota(
                entity(event, "user"), entity(event, "client"),
                limit.isNull() ? Optional.empty() : Optional.of(Quota.upperBound(limit.asDouble())));
            return 0;
        }
        Session session = new Session(
            new KafkaPrincipal(KafkaPrincipal.USER_TYPE, event.get("user").asText()), InetAddress.getLoopbackAddress());
        String client = event.get("client").asText();
        double value = event.get("value").asDouble();
        if (!manager.quotasEnabled()) {
            return 0;
        }
        if (kind.equals("permissive")) {
            ControllerMutationQuota quota =
                ((ControllerMutationQuotaManager) manager).newPermissiveQuotaFor(session, client);
            quota.record(value);
            return quota.throttleTime();
        }
        int throttleMs = manager.recordAndGetThrottleTimeMs(session, client, value, nowMs);
        if (kind.equals("fetch") && throttleMs > 0) {
            manager.unrecordQuotaSensor(session, client, value, nowMs);
        }
        return throttleMs;
    }

    private static Optional<ConfigEntity> entity(JsonNode event, String type) {
        if (!event.has(type)) {
            return Optional.empty();
        }
        boolean isUser = type.equals("user");
        if (event.get(type).isNull()) {
            return Optional.of(isUser ? ClientQuotaManager.DEFAULT_USER_ENTITY : ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
        }
        String name = event.get(type).asText();
        return Optional.of(
            isUser ? new ClientQuotaManager.UserEntity(name) : new ClientQuotaManager.ClientIdEntity(name));
    }

    private static final class SettableTime implements Time {
        private volatile long nowMs = 0;

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
