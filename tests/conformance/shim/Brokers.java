// The brokers behind a cluster of a test, by their node ids.
package org.apache.kafka.common.test.junit;

import java.util.Map;
import org.apache.kafka.common.TopicPartition;

interface Brokers {
    void start() throws Exception;

    void stop() throws Exception;

    /** The broker gives its leaders away and ends. */
    void stopBroker(int id) throws Exception;

    /** On the port and the data that it had. */
    void startBroker(int id) throws Exception;

    /** Of all brokers, also of those that are stopped. */
    Map<Integer, Integer> ports();

    boolean isRunning(int id);

    /** Whether the broker has the log of a partition. */
    boolean hasLog(int id, TopicPartition partition);
}
