package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;

import javax.security.auth.x500.X500Principal;

/**
 * Names of principals as Java and Apache Kafka make them. A distinguished name in DER form, or rules and a name, per line
 * on standard input; the text, or that there is none, per line on standard output, both JSON.
 */
public final class PrincipalSession {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            answers.println(mapper.writeValueAsString(answer(mapper.readTree(line))));
        }
    }

    private static Map<String, Object> answer(JsonNode call) {
        if (call.has("der")) {
            byte[] name = HexFormat.of().parseHex(call.get("der").asText());
            return Map.of("name", new X500Principal(name).getName());
        }
        SslPrincipalMapper mapper;
        try {
            mapper = SslPrincipalMapper.fromRules(call.get("rules").asText());
        } catch (IllegalArgumentException invalid) {
            return Map.of("outcome", "invalid rules");
        }
        try {
            return Map.of("name", mapper.getName(call.get("name").asText()));
        } catch (Exception unmapped) {
            return Map.of("outcome", "not mapped");
        }
    }
}
