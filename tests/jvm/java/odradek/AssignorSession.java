package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Apache Kafka's own assignors of consumer groups. A group per line on standard input (the assignor, the members in the
 * order in which Kafka is to see them, the topics), who gets what per line on standard output, both JSON.
 */
public final class AssignorSession {
    private static final Map<String, ConsumerGroupPartitionAssignor> ASSIGNORS =
        Map.of("uniform", new UniformAssignor(), "range", new RangeAssignor());

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            Map<String, Object> answer;
            try {
                answer = assign(mapper.readTree(line));
            } catch (RuntimeException problem) {
                answer = Map.of("problem", problem.toString());
            }
            answers.println(mapper.writeValueAsString(answer));
        }
    }

    private static Map<String, Object> assign(JsonNode call) {
        Map<Uuid, Integer> counts = new HashMap<>();
        call.get("topics").fields().forEachRemaining(
            topic -> counts.put(Uuid.fromString(topic.getKey()), topic.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (JsonNode member : call.get("members")) {
            String memberId = member.get("id").asText();
            Set<Uuid> topicIds = new HashSet<>();
            member.get("topics").forEach(topicId -> topicIds.add(Uuid.fromString(topicId.asText())));
            Map<Uuid, Set<Integer>> assigned = new HashMap<>();
            member.get("assigned").fields().forEachRemaining(topic -> {
                Uuid topicId = Uuid.fromString(topic.getKey());
                topic.getValue().forEach(partition -> {
                    assigned.computeIfAbsent(topicId, __ -> new HashSet<>()).add(partition.asInt());
                    owners.computeIfAbsent(topicId, __ -> new HashMap<>()).put(partition.asInt(), memberId);
                });
            });
            JsonNode instanceId = member.get("instance");
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                instanceId.isNull() ? Optional.empty() : Optional.of(instanceId.asText()),
                topicIds,
                new Assignment(Collections.unmodifiableMap(assigned))));
            subscriptions.add(topicIds);
        }
        SubscriptionType type =
            subscriptions.size() > 1 ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS;
        GroupAssignment result = ASSIGNORS.get(call.get("assignor").asText()).assign(
            new GroupSpecImpl(members, type, owners), new Describer(counts));
        Map<String, Map<String, List<Integer>>> assignment = new HashMap<>();
        result.members().forEach((memberId, member) -> {
            Map<String, List<Integer>> partitions = new HashMap<>();
            member.partitions().forEach(
                (topicId, numbers) -> partitions.put(topicId.toString(), new ArrayList<>(new TreeSet<>(numbers))));
            assignment.put(memberId, partitions);
        });
        return Map.of("assignment", assignment);
    }

    private record Describer(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topicId) {
            return counts.getOrDefault(topicId, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            return Set.of();
        }
    }
}
