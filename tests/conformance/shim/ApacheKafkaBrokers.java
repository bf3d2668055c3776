// Apache Kafka's own cluster in this JVM, behind the same ClusterInstance: what passes on it is the reference for
// clusters of external brokers (CLUSTER_KIND=apache-kafka).
package org.apache.kafka.common.test.junit;

import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.TestKitNodes;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;

final class ApacheKafkaBrokers implements Brokers {
    private final ClusterConfig config;
    private final KafkaClusterTestKit kit;

    ApacheKafkaBrokers(ClusterConfig config) throws Exception {
        this.config = config;
        Map<String, Short> features = new TreeMap<>();
        config.features().forEach((feature, level) -> features.put(feature.featureName(), level));
        TestKitNodes nodes = new TestKitNodes.Builder(
                BootstrapMetadata.fromVersions(config.metadataVersion(), features, "conformance"))
            .setNumBrokerNodes(config.numBrokers())
            .setNumDisksPerBroker(config.numDisksPerBroker())
            .setPerServerProperties(config.perServerOverrideProperties())
            .setNumControllerNodes(1)
            .setBrokerListenerName(config.brokerListenerName())
            .setBrokerSecurityProtocol(config.brokerSecurityProtocol())
            .setControllerListenerName(config.controllerListenerName())
            .setControllerSecurityProtocol(config.controllerSecurityProtocol())
            .build();
        KafkaClusterTestKit.Builder builder = new KafkaClusterTestKit.Builder(nodes);
        config.serverProperties().forEach(builder::setConfigProp);
        kit = builder.build();
    }

    @Override
    public void start() throws Exception {
        kit.format();
        kit.startup();
        kit.waitForReadyBrokers();
    }

    @Override public void stop() throws Exception { kit.close(); }
    @Override public void stopBroker(int id) { kit.brokers().get(id).shutdown(); }
    @Override public void startBroker(int id) { kit.brokers().get(id).startup(); }
    @Override public boolean isRunning(int id) { return !kit.brokers().get(id).isShutdown(); }

    @Override
    public boolean hasLog(int id, TopicPartition partition) {
        return kit.brokers().get(id).logManager().getLog(partition, false).isDefined();
    }

    @Override
    public Map<Integer, Integer> ports() {
        Map<Integer, Integer> ports = new TreeMap<>();
        kit.brokers().forEach((id, broker) -> ports.put(id, broker.boundPort(config.brokerListenerName())));
        return ports;
    }
}
