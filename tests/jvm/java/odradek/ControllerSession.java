package odradek;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;

/**
 * Decisions of Apache Kafka's controller: changes of a partition ("change") and placements of replicas ("place"). One
 * call per line on standard input, one answer per line on standard output, both JSON.
 */
public final class ControllerSession {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            Map<String, Object> answer;
            try {
                JsonNode call = mapper.readTree(line);
                answer = call.has("place") ? place(call.get("place")) : change(call.get("change"));
            } catch (RuntimeException problem) {
                answer = Map.of("problem", problem.toString());
            }
            answers.println(mapper.writeValueAsString(answer));
        }
    }

    private static Map<String, Object> change(JsonNode call) {
        int[] replicas = array(call.get("replicas"));
        Uuid[] directories = new Uuid[replicas.length];
        Arrays.fill(directories, DirectoryId.UNASSIGNED);
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(directories)
            .setIsr(array(call.get("in_sync")))
            .setAddingReplicas(array(call.get("adding")))
            .setRemovingReplicas(array(call.get("removing")))
            .setElr(array(call.get("eligible")))
            .setLastKnownElr(array(call.get("last_known")))
            .setLeader(call.get("leader").asInt())
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
            .setLeaderEpoch(call.get("leader_epoch").asInt())
            .setPartitionEpoch(call.get("partition_epoch").asInt())
            .build();
        Set<Integer> active = new HashSet<>(list(call.get("active")));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition, Uuid.ONE_UUID, 0, active::contains, MetadataVersion.latestProduction(),
            call.get("min_in_sync").asInt(), call.get("keeps_eligible").asBoolean());
        builder.setElection(PartitionChangeBuilder.Election.valueOf(call.get("election").asText()));
        builder.setDefaultDirProvider(broker -> DirectoryId.UNASSIGNED);
        builder.setUncleanShutdownReplicas(list(call.get("unclean_shutdowns")));
        if (call.hasNonNull("target_in_sync")) {
            builder.setTargetIsr(list(call.get("target_in_sync")));
        }
        if (call.hasNonNull("target")) {
            JsonNode target = call.get("target");
            builder.setTargetReplicas(list(target.get("replicas")));
            builder.setTargetAdding(list(target.get("adding")));
            builder.setTargetRemoving(list(target.get("removing")));
        }
        Optional<ApiMessageAndVersion> record = builder.build();
        Map<String, Object> answer = new HashMap<>();
        answer.put("changed", record.isPresent());
        if (record.isPresent()) {
            PartitionRegistration after = partition.merge((PartitionChangeRecord) record.get().message());
            answer.put("replicas", after.replicas);
            answer.put("in_sync", after.isr);
            answer.put("adding", after.addingReplicas);
            answer.put("removing", after.removingReplicas);
            answer.put("eligible", after.elr);
            answer.put("last_known", after.lastKnownElr);
            answer.put("leader", after.leader);
            answer.put("leader_epoch", after.leaderEpoch);
            answer.put("partition_epoch", after.partitionEpoch);
        }
        return answer;
    }

    private static Map<String, Object> place(JsonNode call) {
        List<UsableBroker> brokers = new ArrayList<>();
        call.get("brokers").forEach(broker -> brokers.add(new UsableBroker(
            broker.get("id").asInt(),
            Optional.ofNullable(broker.get("rack").asText(null)),
            broker.get("fenced").asBoolean())));
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int broker) {
                return DirectoryId.UNASSIGNED;
            }
        };
        Random never = new Random() {
            @Override
            public int nextInt(int bound) {
                return 0;
            }
        };
        List<List<Integer>> placed = new ArrayList<>();
        for (PartitionAssignment assignment : new StripedReplicaPlacer(never).place(
                new PlacementSpec(0, call.get("partitions").asInt(), (short) call.get("factor").asInt()), cluster)
                .assignments()) {
            placed.add(assignment.replicas());
        }
        return Map.of("placed", placed);
    }

    private static int[] array(JsonNode numbers) {
        int[] values = new int[numbers.size()];
        for (int position = 0; position < values.length; position++) {
            values[position] = numbers.get(position).asInt();
        }
        return values;
    }

    private static List<Integer> list(JsonNode numbers) {
        List<Integer> values = new ArrayList<>();
        numbers.forEach(number -> values.add(number.asInt()));
        return values;
    }
}
