package odradek;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;

import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

/** `StreamsApp word-count|join SERVERS NAME STATE_DIRECTORY INPUT... OUTPUT`, with exactly_once_v2, until it is killed. */
public final class StreamsApp {
    public static void main(String[] args) throws InterruptedException {
        StreamsBuilder builder = new StreamsBuilder();
        String output = args[args.length - 1];
        if (args[0].equals("word-count")) {
            countWords(builder, args[4], output);
        } else {
            join(builder, args[4], args[5], output);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), properties(args[1], args[2], args[3]));
        streams.setUncaughtExceptionHandler(failure -> StreamThreadExceptionResponse.REPLACE_THREAD);
        streams.start();
        new CountDownLatch(1).await();
    }

    private static Properties properties(String servers, String name, String stateDirectory) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, name);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0); // each update of a count is a record
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10_000);
        properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        // A static member: a restarted application takes over at once, not after a session timeout.
        properties.put(StreamsConfig.mainConsumerPrefix("group.instance.id"), "only");
        return properties;
    }

    private static void countWords(StreamsBuilder builder, String input, String output) {
        builder.stream(input, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count()
            .toStream()
            .mapValues(String::valueOf)
            .to(output, Produced.with(Serdes.String(), Serdes.String()));
    }

    private static void join(StreamsBuilder builder, String left, String right, String output) {
        Consumed<String, String> text = Consumed.with(Serdes.String(), Serdes.String());
        KStream<String, String> orders = builder.stream(left, text);
        KStream<String, String> payments = builder.stream(right, text);
        orders.join(
            payments, (order, payment) -> order + "+" + payment,
            JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofDays(1)),
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()))
            .to(output, Produced.with(Serdes.String(), Serdes.String()));
    }
}
