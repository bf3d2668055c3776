"""Apache Kafka's command-line tools, by the names of their scripts: each in a JVM of its own (`run_tool`), or many in
one JVM (`ToolSession`), which is the same main() without a second of start-up each.
"""

import json
import selectors
import subprocess
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.jvm.jars import java_command

TOOLS = {
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
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


class ToolSession:
    """`with ToolSession() as tools: tools.run("kafka-topics", "--list", …)`."""

    def __init__(self, heap: str = "256m") -> None:
        command = java_command("odradek.ToolSession", heap=heap)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, name: str, *arguments: str, standard_input: str = "", timeout_seconds: float = 60) -> ToolResult:
        to_session, from_session = self._process.stdin, self._process.stdout
        assert to_session is not None
        assert from_session is not None
        call = {"class": TOOLS[name], "arguments": arguments, "input": standard_input}
        to_session.write(json.dumps(call).encode() + b"\n")
        to_session.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(from_session, selectors.EVENT_READ)
            if not selector.select(timeout_seconds):
                self._process.kill()
                raise TimeoutError(f"{name} {' '.join(arguments)} did not end in {timeout_seconds} s")
        answer: dict[str, Any] = json.loads(from_session.readline())
        return ToolResult(answer["status"], answer["output"], answer["errors"])

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
