package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.protocol.Errors;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/**
 * Performs the steps of the client scenario with Apache Kafka's Java client: a step per line on standard input, its answer per
 * line on standard output, both JSON. The verbs are those of tests/clients/scenario.
 */
public final class ClientDriver {
    interface Verb {
        Object perform(JsonNode arguments) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader steps = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Object> configs = ClientSecurity.properties(args[0]);
        configs.put("default.api.timeout.ms", 20000);
        configs.put("request.timeout.ms", 10000);
        try (Admin admin = Admin.create(configs)) {
            Map<String, Verb> verbs = new LinkedHashMap<>();
            new AdminVerbs(admin).addTo(verbs);
            new RecordVerbs(args[0]).addTo(verbs);
            new TransactionVerbs(args[0], admin).addTo(verbs);
            for (String line = steps.readLine(); line != null; line = steps.readLine()) {
                JsonNode step = mapper.readTree(line);
                Object answer;
                try {
                    answer = verbs.get(step.get("verb").asText()).perform(step.get("arguments"));
                } catch (Throwable failure) {
                    answer = Map.of("error", errorName(failure));
                }
                answers.println(mapper.writeValueAsString(answer));
            }
        }
    }

    static String errorName(Throwable failure) {
        Throwable cause = failure;
        while ((cause instanceof ExecutionException || cause instanceof CompletionException) && cause.getCause() != null) {
            cause = cause.getCause();
        }
        if (cause instanceof OffsetOutOfRangeException) {
            return Errors.OFFSET_OUT_OF_RANGE.name(); // the consumer's own exception, which carries no code
        }
        Errors error = Errors.forException(cause);
        return error == Errors.UNKNOWN_SERVER_ERROR ? cause.toString() : error.name();
    }
}
