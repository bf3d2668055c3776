// The few internals of a broker's JVM that Apache Kafka's Scala test utilities read, answered through the Admin client.
// A test that reads any other internal is aborted with the name of the method.
package org.apache.kafka.common.test.junit;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyString;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import kafka.network.SocketServer;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import org.opentest4j.TestAbortedException;

final class InternalMocks {
    private final ExternalCluster cluster;

    InternalMocks(ExternalCluster cluster) {
        this.cluster = cluster;
    }

    private static Object abort(InvocationOnMock call) throws Throwable {
        if (call.getMethod().getDeclaringClass() == Object.class) {
            return Mockito.RETURNS_DEFAULTS.answer(call);
        }
        throw new TestAbortedException("the test reads inside the broker's JVM: " + call.getMethod().getName());
    }

    private static <T> T mock(Class<T> type) {
        return Mockito.mock(type, InternalMocks::abort);
    }

    Map<Integer, KafkaBroker> brokers(List<Integer> nodeIds) {
        KafkaConfig config = new KafkaConfig(brokerProperties(), false);
        KRaftMetadataCache cache = metadataCache(config, nodeIds.get(0));
        GroupCoordinator coordinator = mock(GroupCoordinator.class);
        Mockito.doReturn(new Properties()).when(coordinator).groupMetadataTopicConfigs();
        SocketServer sockets = mock(SocketServer.class);
        Mockito.doAnswer(call -> port()).when(sockets).boundPort(any());
        Map<Integer, KafkaBroker> brokers = new TreeMap<>();
        for (int id : nodeIds) {
            BrokerServer broker = mock(BrokerServer.class);
            Mockito.doReturn(config).when(broker).config();
            Mockito.doReturn(cache).when(broker).metadataCache();
            Mockito.doReturn(coordinator).when(broker).groupCoordinator();
            Mockito.doReturn(sockets).when(broker).socketServer();
            Mockito.doReturn(false).when(broker).isShutdown();
            Mockito.doReturn(BrokerState.RUNNING).when(broker).brokerState();
            Mockito.doReturn(cluster.clusterId()).when(broker).clusterId();
            brokers.put(id, broker);
        }
        brokers.putIfAbsent(0, brokers.get(nodeIds.get(0)));  // tests name the first broker by this id
        return brokers;
    }

    ControllerServer controller() {
        Controller controller = mock(Controller.class);
        Mockito.doAnswer(call -> CompletableFuture.completedFuture(topicIds())).when(controller).findAllTopicIds(any());
        ControllerServer server = mock(ControllerServer.class);
        Mockito.doReturn(controller).when(server).controller();
        return server;
    }

    private int port() {
        return cluster.brokerBoundPorts().get(0);
    }

    private Properties brokerProperties() {
        Properties properties = new Properties();
        properties.put("process.roles", "broker,controller");
        properties.put("node.id", "1");
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("controller.quorum.voters", "1@127.0.0.1:1");
        properties.put("listeners", "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0");
        properties.put("advertised.listeners", "PLAINTEXT://127.0.0.1:9092");
        properties.putAll(cluster.config().serverProperties());
        return properties;
    }

    private KRaftMetadataCache metadataCache(KafkaConfig config, int nodeId) {
        KRaftMetadataCache cache = mock(KRaftMetadataCache.class);
        Mockito.doAnswer(call -> partitionCount(config, call.getArgument(0))).when(cache).numPartitions(anyString());
        Mockito.doAnswer(call -> Optional.of(new LeaderAndIsr(nodeId, List.of(nodeId))))
            .when(cache).getLeaderAndIsr(anyString(), anyInt());
        Mockito.doAnswer(call -> topicIds().get((String) call.getArgument(0))).when(cache).getTopicId(anyString());
        Mockito.doAnswer(call -> List.of(new Node(nodeId, "127.0.0.1", port()))).when(cache).getAliveBrokerNodes(any());
        return cache;
    }

    private Optional<Integer> partitionCount(KafkaConfig config, String topic) {
        switch (topic) {
            case "__consumer_offsets":
                return Optional.of(config.getInt("offsets.topic.num.partitions"));
            case "__transaction_state":
                return Optional.of(config.getInt("transaction.state.log.num.partitions"));
            default:
                try (Admin admin = cluster.admin()) {
                    int count = ExternalCluster.partitionCount(admin, topic);
                    return count == 0 ? Optional.empty() : Optional.of(count);
                }
        }
    }

    private Map<String, Uuid> topicIds() throws Exception {
        Map<String, Uuid> ids = new HashMap<>();
        try (Admin admin = cluster.admin()) {
            admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get()
                .forEach(listing -> ids.put(listing.name(), listing.topicId()));
        }
        return ids;
    }
}
