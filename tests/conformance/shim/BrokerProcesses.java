// External brokers: one with the id that it has by default, or, with ZOOKEEPER_CONNECT, as many as the test asks for,
// with the ids from 0 on.
package org.apache.kafka.common.test.junit;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.test.api.ClusterConfig;

final class BrokerProcesses implements Brokers {
    static final String ZOOKEEPER = System.getenv("ZOOKEEPER_CONNECT");

    private final Map<Integer, BrokerProcess> processes = new TreeMap<>();

    BrokerProcesses(ClusterConfig config) throws Exception {
        int count = ZOOKEEPER == null ? 1 : config.numBrokers();
        String root = "/" + UUID.randomUUID();
        for (int id = 0; id < count; id++) {
            Properties properties = new Properties();
            properties.putAll(config.serverProperties());
            properties.putAll(config.perServerOverrideProperties().getOrDefault(id, Map.of()));
            Listener.addProperties(config.brokerSecurityProtocol(), properties);
            int disks = 1;
            if (ZOOKEEPER != null) {
                properties.put("node.id", String.valueOf(id));
                properties.put("zookeeper.connect", ZOOKEEPER + root);
                disks = config.numDisksPerBroker();
            }
            processes.put(id, new BrokerProcess(properties, disks, config.brokerSecurityProtocol()));
        }
    }

    @Override
    public void start() throws Exception {
        for (BrokerProcess each : processes.values()) {
            each.start();
        }
        for (BrokerProcess each : processes.values()) {
            each.awaitListening();
        }
    }

    @Override
    public void stop() {
        List<BrokerProcess> all = new ArrayList<>(processes.values());
        all.forEach(BrokerProcess::kill);
    }

    @Override public void stopBroker(int id) throws Exception { processes.get(id).terminate(); }

    @Override
    public void startBroker(int id) throws Exception {
        processes.get(id).start();
        processes.get(id).awaitListening();
    }

    @Override public boolean isRunning(int id) { return processes.get(id).isRunning(); }

    @Override
    public boolean hasLog(int id, TopicPartition partition) {
        return processes.get(id).hasDirectory(partition.toString());
    }

    @Override
    public Map<Integer, Integer> ports() {
        Map<Integer, Integer> ports = new TreeMap<>();
        processes.forEach((id, process) -> ports.put(id, process.port));
        return ports;
    }
}
