// The few internals of a broker's JVM that Apache Kafka's Scala test utilities read, answered through the Admin client.
// A test that reads any other internal is aborted with the name of the method.
package org.apache.kafka.common.test.junit;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyString;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.network.SocketServer;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import org.opentest4j.TestAbortedException;
import scala.Option;

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
        Map<Integer, KafkaBroker> brokers = new TreeMap<>();
        for (int id : nodeIds) {
            KafkaConfig config = new KafkaConfig(brokerProperties(id), false);
            KRaftMetadataCache cache = metadataCache(config);
            GroupCoordinator coordinator = mock(GroupCoordinator.class);
            Mockito.doReturn(new Properties()).when(coordinator).groupMetadataTopicConfigs();
            SocketServer sockets = mock(SocketServer.class);
            Mockito.doAnswer(call -> cluster.port(id)).when(sockets).boundPort(any());
            BrokerServer broker = mock(BrokerServer.class);
            Mockito.doReturn(config).when(broker).config();
            Mockito.doReturn(cache).when(broker).metadataCache();
            Mockito.doReturn(coordinator).when(broker).groupCoordinator();
            Mockito.doReturn(sockets).when(broker).socketServer();
            Mockito.doAnswer(call -> cluster.port(id)).when(broker).boundPort(any());
            Mockito.doAnswer(call -> !cluster.isRunning(id)).when(broker).isShutdown();
            Mockito.doAnswer(call -> cluster.isRunning(id) ? BrokerState.RUNNING : BrokerState.NOT_RUNNING)
                .when(broker).brokerState();
            Mockito.doReturn(cluster.clusterId()).when(broker).clusterId();
            Mockito.doReturn(replicaManager(id, cache)).when(broker).replicaManager();
            if (nodeIds.size() > 1) {
                addLife(broker, id);
            }
            brokers.put(id, broker);
        }
        brokers.putIfAbsent(0, brokers.get(nodeIds.get(0)));  // tests name the first broker by this id
        return brokers;
    }

    private void addLife(BrokerServer broker, int id) {
        Mockito.doAnswer(call -> stop(id)).when(broker).shutdown();
        Mockito.doAnswer(call -> stop(id)).when(broker).shutdown(any());
        Mockito.doAnswer(call -> null).when(broker).awaitShutdown();
        Mockito.doAnswer(call -> {
            cluster.startBroker(id);
            return null;
        }).when(broker).startup();
        LogManager logs = mock(LogManager.class);
        Mockito.doAnswer(call -> {
            boolean exists = cluster.hasLog(id, call.getArgument(0));
            return exists ? Option.apply(mock(UnifiedLog.class)) : Option.empty();
        }).when(logs).getLog(any(), anyBoolean());
        Mockito.doReturn(false).when(logs).getLog$default$2();
        Mockito.doReturn(logs).when(broker).logManager();
    }

    private Object stop(int id) {
        if (cluster.isRunning(id)) {
            cluster.shutdownBroker(id);
        }
        return null;
    }

    /** It knows which partitions the broker leads, and the metadata. */
    private ReplicaManager replicaManager(int id, KRaftMetadataCache cache) {
        ReplicaManager replicas = mock(ReplicaManager.class);
        Mockito.doReturn(cache).when(replicas).metadataCache();
        Mockito.doAnswer(call -> {
            TopicPartition of = call.getArgument(0);
            Optional<LeaderAndIsr> state = leaderAndIsr(of.topic(), of.partition());
            if (state.isEmpty() || state.get().leader() != id) {
                return Option.empty();
            }
            Partition partition = mock(Partition.class);
            Mockito.doReturn(Option.apply(mock(UnifiedLog.class))).when(partition).leaderLogIfLocal();
            return Option.apply(partition);
        }).when(replicas).onlinePartition(any());
        return replicas;
    }

    ControllerServer controller() {
        Controller controller = mock(Controller.class);
        Mockito.doAnswer(call -> CompletableFuture.completedFuture(topicIds())).when(controller).findAllTopicIds(any());
        ControllerServer server = mock(ControllerServer.class);
        Mockito.doReturn(controller).when(server).controller();
        return server;
    }

    private Properties brokerProperties(int id) {
        Properties properties = new Properties();
        properties.put("process.roles", "broker,controller");
        properties.put("node.id", String.valueOf(id));
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("controller.quorum.voters", id + "@127.0.0.1:1");
        properties.put("listeners", "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0");
        properties.put("advertised.listeners", "PLAINTEXT://127.0.0.1:9092");
        properties.putAll(cluster.config().serverProperties());
        properties.putAll(cluster.config().perServerOverrideProperties().getOrDefault(id, Map.of()));
        return properties;
    }

    private KRaftMetadataCache metadataCache(KafkaConfig config) {
        KRaftMetadataCache cache = mock(KRaftMetadataCache.class);
        Mockito.doAnswer(call -> partitionCount(config, call.getArgument(0))).when(cache).numPartitions(anyString());
        Mockito.doAnswer(call -> leaderAndIsr(call.getArgument(0), call.getArgument(1)))
            .when(cache).getLeaderAndIsr(anyString(), anyInt());
        Mockito.doAnswer(call -> topicIds().get((String) call.getArgument(0))).when(cache).getTopicId(anyString());
        Mockito.doAnswer(call -> aliveBrokers()).when(cache).getAliveBrokerNodes(any());
        return cache;
    }

    private List<Node> aliveBrokers() throws Exception {
        try (Admin admin = cluster.admin()) {
            return List.copyOf(admin.describeCluster().nodes().get());
        }
    }

    private Optional<LeaderAndIsr> leaderAndIsr(String topic, int partition) throws Exception {
        List<Integer> nodeIds = List.copyOf(cluster.brokerIds());
        if (nodeIds.size() == 1) {
            return Optional.of(new LeaderAndIsr(nodeIds.get(0), nodeIds));
        }
        try (Admin admin = cluster.admin()) {
            TopicPartitionInfo info = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()
                .stream().filter(each -> each.partition() == partition).findFirst().orElseThrow();
            if (info.leader() == null) {
                return Optional.empty();
            }
            return Optional.of(new LeaderAndIsr(info.leader().id(), info.isr().stream().map(Node::id).toList()));
        } catch (ExecutionException | NoSuchElementException unknown) {
            return Optional.empty();
        }
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
