package odradek;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/**
 * Apache Kafka in the foreground: formats an empty directory in the same JVM (a second JVM would cost a second or more), and
 * ends when its standard input closes, so that a test run that was killed leaves no broker behind.
 */
public final class Broker {
    public static void main(String[] args) throws Exception {
        String propertiesFile = args[0];
        String clusterId = args[1];
        Thread guard = new Thread(Broker::exitAtEndOfInput, "end-of-input");
        guard.setDaemon(true);
        guard.start();
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(propertiesFile)) {
            properties.load(file);
        }
        if (!Files.exists(Path.of(properties.getProperty("log.dirs"), "meta.properties"))) {
            String[] format = {"format", "--cluster-id", clusterId, "--config", propertiesFile};
            int status = kafka.tools.StorageTool.execute(format, System.err);
            if (status != 0) {
                System.exit(status);
            }
        }
        kafka.Kafka.main(new String[] {propertiesFile});
    }

    private static void exitAtEndOfInput() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException ignored) {
            // the other end is gone as well
        }
        System.exit(0);
    }
}
