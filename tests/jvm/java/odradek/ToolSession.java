package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.utils.Exit;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Runs Apache Kafka's command-line tools one after another in one JVM, because a JVM each costs a second each. Every tool's
 * own main() runs with its arguments; only exit, shutdown hooks and the three standard streams are ours. A call per line on
 * standard input, what it printed per line on standard output, both JSON.
 */
public final class ToolSession {
    private static final class Exited extends Error {
    }

    private static Integer status;
    private static final List<Runnable> HOOKS = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.Procedure exit = (code, message) -> {
            if (status == null) {
                status = code; // a tool that catches our Exited calls exit again; the first one counts
            }
            throw new Exited();
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            answers.println(mapper.writeValueAsString(run(mapper.readTree(line))));
        }
    }

    private static Map<String, Object> run(JsonNode call) throws Exception {
        List<String> arguments = new ArrayList<>();
        call.get("arguments").forEach(each -> arguments.add(each.asText()));
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        status = null;
        HOOKS.clear();
        System.setIn(new ByteArrayInputStream(call.get("input").asText().getBytes(StandardCharsets.ISO_8859_1)));
        System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
        try {
            var main = Class.forName(call.get("class").asText()).getMethod("main", String[].class);
            main.invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException ended) {
            if (!(ended.getCause() instanceof Exited)) {
                ended.getCause().printStackTrace();
                status = status == null ? 1 : status;
            }
        }
        for (Runnable hook : HOOKS) {
            hook.run();
        }
        System.out.flush();
        return Map.of(
            "status", status == null ? 0 : status,
            "output", output.toString(StandardCharsets.ISO_8859_1),
            "errors", errors.toString(StandardCharsets.UTF_8));
    }
}
