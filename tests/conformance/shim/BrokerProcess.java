// One broker: `BROKER_COMMAND PORT SERVER_PROPERTIES DATA_DIRECTORY...` in the foreground, killed at the end.
package org.apache.kafka.common.test.junit;

import java.io.IOException;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.security.auth.SecurityProtocol;

final class BrokerProcess {
    private static final String COMMAND = System.getenv("BROKER_COMMAND");
    private static final long START_TIMEOUT_MS = 120_000;
    private static final long STOP_TIMEOUT_MS = 60_000;

    final int port;
    private final Path directory;
    private final List<String> command;
    private final int disks;
    private final SecurityProtocol protocol;
    private Process process;

    BrokerProcess(Properties properties, int disks, SecurityProtocol protocol) throws IOException {
        this.disks = disks;
        this.protocol = protocol;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        directory = Files.createTempDirectory("conformance-broker");
        Path file = directory.resolve("server.properties");
        try (OutputStream output = Files.newOutputStream(file)) {
            properties.store(output, "from @ClusterTest");
        }
        command = new ArrayList<>(List.of(COMMAND.split(" ")));
        command.addAll(List.of(String.valueOf(port), file.toString()));
        for (int disk = 0; disk < disks; disk++) {
            command.add(directory.resolve("data" + disk).toString());
        }
    }

    void start() throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("LISTENER_PROTOCOL", protocol.name());
        process = builder
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(directory.resolve("broker.log").toFile()))
            .start();
    }

    void awaitListening() throws InterruptedException {
        long deadline = System.currentTimeMillis() + START_TIMEOUT_MS;
        while (true) {
            try (Socket socket = new Socket("127.0.0.1", port)) {
                return;
            } catch (IOException notListening) {
                if (System.currentTimeMillis() > deadline || !process.isAlive()) {
                    throw new IllegalStateException("the broker did not start; its output is in " + directory);
                }
                Thread.sleep(50);
            }
        }
    }

    /** In one of its data directories. */
    boolean hasDirectory(String name) {
        return command.subList(command.size() - disks, command.size()).stream()
            .anyMatch(data -> Files.isDirectory(Path.of(data, name)));
    }

    boolean isRunning() {
        return process != null && process.isAlive();
    }

    /** SIGTERM, as a service manager sends it. */
    void terminate() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(STOP_TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("the broker did not stop; its output is in " + directory);
        }
    }

    void kill() {
        if (process != null) {
            process.destroyForcibly();
        }
        try {
            if (process != null) {
                process.waitFor(5, TimeUnit.SECONDS);
            }
            List<Path> paths;
            try (var walk = Files.walk(directory)) {
                paths = walk.sorted(Comparator.reverseOrder()).toList();
            }
            for (Path path : paths) {
                Files.deleteIfExists(path);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } catch (IOException stillWritten) {
            // The directory is temporary: what a dying broker leaves in it does no harm.
        }
    }
}
