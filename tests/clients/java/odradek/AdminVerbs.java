package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The scenario's verbs that the Admin client performs. */
final class AdminVerbs {
    private static final Map<String, Object> DONE = Map.of("error", "NONE");
    private final Admin admin;

    AdminVerbs(Admin admin) {
        this.admin = admin;
    }

    void addTo(Map<String, ClientDriver.Verb> verbs) {
        verbs.put("cluster", this::cluster);
        verbs.put("create_topic", this::createTopic);
        verbs.put("delete_topic", this::deleteTopic);
        verbs.put("list_topics", arguments -> admin.listTopics().names().get());
        verbs.put("describe_topic", this::describeTopic);
        verbs.put("create_partitions", this::createPartitions);
        verbs.put("offset", this::offset);
        verbs.put("describe_configs", this::describeConfigs);
        verbs.put("alter_configs", this::alterConfigs);
        verbs.put("delete_records", this::deleteRecords);
    }

    private Object cluster(JsonNode arguments) throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        List<Integer> nodes = cluster.nodes().get().stream().map(Node::id).toList();
        return Map.of("cluster_id", cluster.clusterId().get(), "nodes", nodes, "controller", cluster.controller().get().id());
    }

    private static Optional<Integer> positive(JsonNode number) {
        return number.asInt() == -1 ? Optional.empty() : Optional.of(number.asInt());
    }

    private Object createTopic(JsonNode arguments) throws Exception {
        Map<String, String> configs = new HashMap<>();
        arguments.get("configs").fields().forEachRemaining(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        NewTopic topic = new NewTopic(
            arguments.get("topic").asText(),
            positive(arguments.get("partitions")),
            positive(arguments.get("replication_factor")).map(Integer::shortValue));
        CreateTopicsOptions options = new CreateTopicsOptions().validateOnly(arguments.get("validate_only").asBoolean());
        admin.createTopics(List.of(topic.configs(configs)), options).all().get();
        return DONE;
    }

    private Object deleteTopic(JsonNode arguments) throws Exception {
        admin.deleteTopics(List.of(arguments.get("topic").asText())).all().get();
        return DONE;
    }

    private Object describeTopic(JsonNode arguments) throws Exception {
        String name = arguments.get("topic").asText();
        TopicDescription topic = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
        List<Object> partitions = new ArrayList<>();
        for (TopicPartitionInfo each : topic.partitions()) {
            partitions.add(Map.of(
                "partition", each.partition(),
                "leader", each.leader().id(),
                "replicas", each.replicas().stream().map(Node::id).toList(),
                "in_sync", each.isr().stream().map(Node::id).toList()));
        }
        return Map.of(
            "error", "NONE", "topic_id", topic.topicId().toString(), "internal", topic.isInternal(), "partitions", partitions);
    }

    private Object createPartitions(JsonNode arguments) throws Exception {
        NewPartitions partitions = NewPartitions.increaseTo(arguments.get("count").asInt());
        admin.createPartitions(Map.of(arguments.get("topic").asText(), partitions)).all().get();
        return DONE;
    }

    private static OffsetSpec place(JsonNode at) {
        return switch (at.asText()) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            case "max_timestamp" -> OffsetSpec.maxTimestamp();
            default -> OffsetSpec.forTimestamp(at.asLong());
        };
    }

    private static TopicPartition partition(JsonNode arguments) {
        return new TopicPartition(arguments.get("topic").asText(), arguments.get("partition").asInt());
    }

    private Object offset(JsonNode arguments) throws Exception {
        TopicPartition partition = partition(arguments);
        ListOffsetsResult result = admin.listOffsets(Map.of(partition, place(arguments.get("at"))));
        ListOffsetsResult.ListOffsetsResultInfo found = result.partitionResult(partition).get();
        return Map.of("offset", found.offset(), "at_timestamp", found.timestamp());
    }

    private ConfigResource resource(JsonNode arguments) throws Exception {
        return switch (arguments.get("resource").asText()) {
            case "topic" -> new ConfigResource(ConfigResource.Type.TOPIC, arguments.get("topic").asText());
            case "broker-default" -> new ConfigResource(ConfigResource.Type.BROKER, "");
            default -> {
                int node = admin.describeCluster().nodes().get().iterator().next().id();
                yield new ConfigResource(ConfigResource.Type.BROKER, Integer.toString(node));
            }
        };
    }

    private Object describeConfigs(JsonNode arguments) throws Exception {
        ConfigResource resource = resource(arguments);
        Map<String, Object> configs = new LinkedHashMap<>();
        var described = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        for (JsonNode key : arguments.get("keys")) {
            ConfigEntry entry = described.get(key.asText());
            Map<String, Object> shown = new LinkedHashMap<>();
            shown.put("value", entry.value());
            shown.put("source", entry.source().name());
            shown.put("read_only", entry.isReadOnly());
            shown.put("sensitive", entry.isSensitive());
            configs.put(entry.name(), shown);
        }
        return Map.of("error", "NONE", "configs", configs);
    }

    private Object alterConfigs(JsonNode arguments) throws Exception {
        List<AlterConfigOp> operations = new ArrayList<>();
        for (JsonNode each : arguments.get("operations")) {
            String value = each.get(2).isNull() ? null : each.get(2).asText();
            AlterConfigOp.OpType kind = AlterConfigOp.OpType.valueOf(each.get(0).asText().toUpperCase());
            operations.add(new AlterConfigOp(new ConfigEntry(each.get(1).asText(), value), kind));
        }
        admin.incrementalAlterConfigs(Map.of(resource(arguments), operations)).all().get();
        return DONE;
    }

    private Object deleteRecords(JsonNode arguments) throws Exception {
        TopicPartition partition = partition(arguments);
        RecordsToDelete before = RecordsToDelete.beforeOffset(arguments.get("before").asLong());
        long low = admin.deleteRecords(Map.of(partition, before)).lowWatermarks().get(partition).get().lowWatermark();
        return Map.of("error", "NONE", "low_watermark", low);
    }
}
