package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Decisions of Apache Kafka's own authorizer. Settings, access control lists (those added, then those removed again) and
 * requests per line on standard input, the decisions per line on standard output, both JSON.
 */
public final class AclSession {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            Map<String, Object> answer;
            try {
                answer = decide(mapper.readTree(line));
            } catch (Exception problem) {
                answer = Map.of("problem", problem.toString());
            }
            answers.println(mapper.writeValueAsString(answer));
        }
    }

    private static Map<String, Object> decide(JsonNode call) throws Exception {
        try (Metrics metrics = new Metrics(); StandardAuthorizer authorizer = new StandardAuthorizer()) {
            authorizer.withPluginMetrics(new PluginMetricsImpl(metrics, Map.of()));
            authorizer.configure(Map.of(
                "super.users", call.get("superUsers").asText(),
                "allow.everyone.if.no.acl.found", call.get("allowEveryone").asText()));
            authorizer.completeInitialLoad();
            Map<JsonNode, Uuid> ids = new HashMap<>();
            for (JsonNode acl : call.get("acls")) {
                Uuid id = Uuid.randomUuid();
                ids.put(acl, id);
                authorizer.addAcl(id, acl(acl));
            }
            for (JsonNode acl : call.get("removed")) {
                authorizer.removeAcl(ids.get(acl));
            }
            List<Boolean> decisions = new ArrayList<>();
            for (JsonNode request : call.get("requests")) {
                AuthorizableRequestContext context = context(request.get(0).asText(), request.get(1).asText());
                AclOperation operation = AclOperation.fromCode((byte) request.get(2).asInt());
                ResourceType type = ResourceType.fromCode((byte) request.get(3).asInt());
                AuthorizationResult result;
                if (request.get(4).isNull()) {
                    result = authorizer.authorizeByResourceType(context, operation, type);
                } else {
                    ResourcePattern resource = new ResourcePattern(type, request.get(4).asText(), PatternType.LITERAL);
                    result = authorizer.authorize(context, List.of(new Action(operation, resource, 1, false, false))).get(0);
                }
                decisions.add(result == AuthorizationResult.ALLOWED);
            }
            return Map.of("decisions", decisions);
        }
    }

    private static StandardAcl acl(JsonNode acl) {
        return new StandardAcl(
            ResourceType.fromCode((byte) acl.get(0).asInt()),
            acl.get(1).asText(),
            PatternType.fromCode((byte) acl.get(2).asInt()),
            acl.get(3).asText(),
            acl.get(4).asText(),
            AclOperation.fromCode((byte) acl.get(5).asInt()),
            AclPermissionType.fromCode((byte) acl.get(6).asInt()));
    }

    private static AuthorizableRequestContext context(String principal, String host) throws Exception {
        KafkaPrincipal parsed = new KafkaPrincipal(
            principal.substring(0, principal.indexOf(':')), principal.substring(principal.indexOf(':') + 1));
        InetAddress address = InetAddress.getByName(host);
        return new AuthorizableRequestContext() {
            @Override public String listenerName() {
                return "PLAINTEXT";
            }

            @Override public SecurityProtocol securityProtocol() {
                return SecurityProtocol.PLAINTEXT;
            }

            @Override public KafkaPrincipal principal() {
                return parsed;
            }

            @Override public InetAddress clientAddress() {
                return address;
            }

            @Override public int requestType() {
                return 0;
            }

            @Override public int requestVersion() {
                return 0;
            }

            @Override public String clientId() {
                return "";
            }

            @Override public int correlationId() {
                return 0;
            }
        };
    }
}
