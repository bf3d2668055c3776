package odradek;

import java.io.FileReader;
import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** The properties of every client under test: its address, and those in the file that TEST_CLIENT_PROPERTIES names. */
final class ClientSecurity {
    private ClientSecurity() {
    }

    static Map<String, Object> properties(String bootstrapServers) {
        Map<String, Object> configs = new HashMap<>();
        String path = System.getenv("TEST_CLIENT_PROPERTIES");
        if (path != null) {
            Properties given = new Properties();
            try (Reader reader = new FileReader(path)) {
                given.load(reader);
            } catch (IOException unreadable) {
                throw new UncheckedIOException(unreadable);
            }
            given.forEach((name, value) -> configs.put((String) name, value));
        }
        configs.put("bootstrap.servers", bootstrapServers);
        return configs;
    }
}
