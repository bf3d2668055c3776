"""Apache Kafka's command-line tools, by the names of their scripts: each in a JVM of its own (`run_tool`), or many in
one JVM (`ToolSession`), which is the same main() without a second of start-up each.
"""

import subprocess
from dataclasses import dataclass

from tests.jvm.jars import java_command
from tests.jvm.json_session import JsonSession

TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}


@dataclass(frozen=True, slots=True)
class ToolResult:
    status: int
    output: str  # one character is one byte
    errors: str

    def checked(self) -> str:
        """What it printed, if it ended well."""
        if self.status != 0:
            raise RuntimeError(f"status {self.status}: {self.output[-2000:]} {self.errors[-2000:]}")
        return self.output


def run_tool(name: str, *arguments: str, standard_input: str = "", timeout_seconds: float = 60) -> ToolResult:
    command = java_command(TOOLS[name], *arguments)
    done = subprocess.run(
        command, input=standard_input.encode("latin-1"), capture_output=True, timeout=timeout_seconds, check=False
    )
    return ToolResult(done.returncode, done.stdout.decode("latin-1"), done.stderr.decode(errors="replace"))


class ToolSession(JsonSession):
    """`with ToolSession() as tools: tools.run("kafka-topics", "--list", …)`."""

    def __init__(self, heap: str = "256m") -> None:
        super().__init__("odradek.ToolSession", heap)

    def run(self, name: str, *arguments: str, standard_input: str = "", timeout_seconds: float = 60) -> ToolResult:
        call = {"class": TOOLS[name], "arguments": arguments, "input": standard_input}
        answer = self.call(call, timeout_seconds)
        return ToolResult(answer["status"], answer["output"], answer["errors"])
