// The ClusterInstance that a test gets: a cluster of one or several external brokers, reached through the Admin client.
// A test that asks for more (a controller listener) is aborted with the reason.
package org.apache.kafka.common.test.junit;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;
import org.opentest4j.TestAbortedException;

final class ExternalCluster implements ClusterInstance {
    private static final boolean IS_APACHE_KAFKA = "apache-kafka".equals(System.getenv("CLUSTER_KIND"));
    private static final long TOPIC_TIMEOUT_MS = 30_000;
    private static final long READY_TIMEOUT_MS = 120_000;
    private static final Map<String, Object> FIRST_CONTACT =
        Map.of("request.timeout.ms", "20000", "default.api.timeout.ms", "60000");

    private final ClusterConfig config;
    private final boolean isCombined;
    private Brokers brokers;
    private boolean isStopped;
    private String clusterId;
    private List<Integer> nodeIds = List.of();
    private Map<Integer, KafkaBroker> brokerMocks;
    private Map<Integer, ControllerServer> controllerMocks;

    ExternalCluster(ClusterConfig config, boolean isCombined) {
        this.config = config;
        this.isCombined = isCombined;
    }

    /** Combined and isolated controllers are the same external broker: one run is enough. */
    void abortIfRepeated() {
        if (isCombined && config.clusterTypes().contains(Type.KRAFT)) {
            throw new TestAbortedException("the same test runs with an isolated controller");
        }
    }

    @Override
    public void start() {
        if (brokers != null) {
            return;
        }
        try {
            brokers = IS_APACHE_KAFKA ? new ApacheKafkaBrokers(config) : new BrokerProcesses(config);
            brokers.start();
            waitForReadyBrokers();
            try (Admin admin = admin(FIRST_CONTACT)) {
                DescribeClusterResult described = admin.describeCluster();
                clusterId = described.clusterId().get();
                nodeIds = described.nodes().get().stream().map(Node::id).sorted().toList();
            }
        } catch (Exception failure) {
            throw new IllegalStateException("the external brokers did not start or do not answer", failure);
        }
    }

    @Override
    public void stop() {
        if (brokers != null && !isStopped) {
            try {
                brokers.stop();
            } catch (Exception failure) {
                throw new IllegalStateException("the external brokers did not stop", failure);
            }
        }
        isStopped = true;
    }

    @Override public boolean started() { return brokers != null; }
    @Override public boolean stopped() { return isStopped; }
    @Override public Type type() { return isCombined ? Type.CO_KRAFT : Type.KRAFT; }
    @Override public ClusterConfig config() { return config; }
    @Override public String clusterId() { return clusterId; }
    @Override public String bootstrapServers() { return String.join(",", addresses()); }
    @Override public List<Integer> brokerBoundPorts() { return List.copyOf(brokers.ports().values()); }
    @Override public Set<Integer> brokerIds() { return new TreeSet<>(nodeIds); }
    @Override public Set<Integer> controllerIds() { return nodeIds.isEmpty() ? Set.of() : Set.of(nodeIds.get(0)); }
    @Override public ListenerName clientListener() { return config.brokerListenerName(); }
    @Override public ListenerName controllerListenerName() { return new ListenerName("CONTROLLER"); }
    @Override public Set<GroupProtocol> supportedGroupProtocols() {
        return Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
    }
    @Override public Optional<FaultHandlerException> firstFatalException() { return Optional.empty(); }
    @Override public Optional<FaultHandlerException> firstNonFatalException() { return Optional.empty(); }
    @Override public void ensureConsistentMetadata() { }
    @Override public void ensureConsistentMetadata(Collection<KafkaBroker> b, Collection<ControllerServer> c) { }

    @Override public String bootstrapControllers() { throw new TestAbortedException("needs a controller listener"); }
    @Override public List<Integer> controllerBoundPorts() {
        throw new TestAbortedException("needs a controller listener");
    }

    private List<String> addresses() {
        return brokers.ports().values().stream().map(port -> "127.0.0.1:" + port).toList();
    }

    boolean isRunning(int id) {
        return nodeIds.size() == 1 || brokers.isRunning(id);
    }

    boolean hasLog(int id, TopicPartition partition) {
        return brokers.hasLog(id, partition);
    }

    int port(int id) {
        return nodeIds.size() == 1 ? brokerBoundPorts().get(0) : brokers.ports().get(id);
    }

    @Override
    public void shutdownBroker(int id) {
        abortIfAlone();
        try {
            brokers.stopBroker(id);
        } catch (Exception failure) {
            throw new IllegalStateException("broker " + id + " did not stop", failure);
        }
    }

    @Override
    public void startBroker(int id) {
        abortIfAlone();
        try {
            brokers.startBroker(id);
        } catch (Exception failure) {
            throw new IllegalStateException("broker " + id + " did not start", failure);
        }
    }

    private void abortIfAlone() {
        if (BrokerProcesses.ZOOKEEPER == null && !IS_APACHE_KAFKA) {
            throw new TestAbortedException("needs to stop a broker");
        }
    }

    /** All brokers that run are in the metadata of each. */
    @Override
    public void waitForReadyBrokers() throws InterruptedException {
        List<Integer> running = brokers.ports().keySet().stream().filter(brokers::isRunning).toList();
        for (int id : running) {
            Map<String, Object> configs = new HashMap<>(FIRST_CONTACT);
            configs.put("bootstrap.servers", "127.0.0.1:" + brokers.ports().get(id));
            try (Admin admin = Admin.create(setClientSaslConfig(configs))) {
                TestUtils.waitForCondition(
                    () -> admin.describeCluster().nodes().get().size() >= running.size(), READY_TIMEOUT_MS,
                    "the brokers do not know each other");
            }
        }
    }

    /** A cluster holds as many replicas of a partition as it has brokers, whatever the test asks for. */
    @Override
    public void createTopic(String topic, int partitions, short replicas, Map<String, String> configs)
            throws InterruptedException {
        short possible = (short) Math.min(replicas, nodeIds.size());
        Map<String, String> kept = new HashMap<>(configs);
        if (possible < replicas) {
            kept.remove("min.insync.replicas");
        }
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, possible).configs(kept)));
            waitTopicCreation(topic, partitions);
        }
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        try (Admin admin = admin()) {
            TestUtils.waitForCondition(
                () -> partitionCount(admin, topic) == partitions, TOPIC_TIMEOUT_MS, topic + " was not created");
        }
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        ListTopicsOptions all = new ListTopicsOptions().listInternal(true);
        try (Admin admin = admin()) {
            TestUtils.waitForCondition(
                () -> !admin.listTopics(all).names().get().contains(topic), TOPIC_TIMEOUT_MS, topic + " was not deleted");
        }
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> expected) throws InterruptedException {
        try (Admin admin = admin()) {
            TestUtils.waitForCondition(() -> {
                Set<AccessControlEntry> found = new HashSet<>();
                admin.describeAcls(filter).values().get().forEach(binding -> found.add(binding.entry()));
                return found.equals(new HashSet<>(expected));
            }, "the ACLs are not as expected");
        }
    }

    static int partitionCount(Admin admin, String topic) {
        try {
            return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        } catch (Exception unknown) {
            return 0;
        }
    }

    @Override
    public synchronized Map<Integer, KafkaBroker> brokers() {
        if (brokerMocks == null) {
            brokerMocks = new InternalMocks(this).brokers(nodeIds);
        }
        return brokerMocks;
    }

    /** Empty, so that waiting for consistent metadata returns at once; except for GroupCoordinatorBaseRequestTest. */
    @Override
    public synchronized Map<Integer, ControllerServer> controllers() {
        boolean readsTopicIds = StackWalker.getInstance().walk(
            frames -> frames.anyMatch(frame -> frame.getMethodName().equals("getTopicIds")));
        if (!readsTopicIds) {
            return Map.of();
        }
        if (controllerMocks == null) {
            controllerMocks = Map.of(nodeIds.get(0), new InternalMocks(this).controller());
        }
        return controllerMocks;
    }
}
