package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The library by which Apache Kafka resolves the patterns of consumer groups. A pattern and names per line on standard
 * input, the names that match or the reason why none can per line on standard output, both JSON.
 */
public final class PatternSession {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            answers.println(mapper.writeValueAsString(match(mapper.readTree(line))));
        }
    }

    private static Map<String, Object> match(JsonNode call) {
        try {
            Pattern pattern = Pattern.compile(call.get("pattern").asText());
            List<String> names = new ArrayList<>();
            call.get("names").forEach(name -> {
                if (pattern.matcher(name.asText()).matches()) {
                    names.add(name.asText());
                }
            });
            return Map.of("names", names);
        } catch (PatternSyntaxException invalid) {
            return Map.of("invalid", invalid.getDescription());
        }
    }
}
