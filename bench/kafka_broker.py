"""Apache Kafka as a broker to measure: one combined KRaft node, with the JVM flags of its own start script."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.brokers import PROPERTIES, BrokerError, client_listeners, free_port
from bench.results import KAFKA
from tests.jvm.jars import KAFKA_VERSION, libraries

# kafka-server-start.sh and kafka-run-class.sh: KAFKA_HEAP_OPTS and KAFKA_JVM_PERFORMANCE_OPTS.
JVM_FLAGS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
CLUSTER_ID = "b2RyYWRlay1iZW5jaG1hcms"


@dataclass(frozen=True, slots=True)
class ApacheKafka:
    key: str = KAFKA
    properties: Mapping[str, str] = field(default_factory=dict)
    ssl_port: int | None = None

    @property
    def title(self) -> str:
        return f"Apache Kafka {KAFKA_VERSION}"

    @property
    def is_odradek(self) -> bool:
        return False

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def member(self, properties: Mapping[str, str]) -> "ApacheKafka":
        return replace(self, properties=properties)

    def secured(self, ssl_port: int, properties: Mapping[str, str]) -> "ApacheKafka":
        return replace(self, ssl_port=ssl_port, properties={**self.properties, **properties})

    def prepare(self, directory: Path, port: int) -> None:
        """Write its properties and format its directory, which KRaft requires before the first start."""
        controller_port = free_port()
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": ",".join(
                [*client_listeners(port, self.ssl_port), f"CONTROLLER://127.0.0.1:{controller_port}"]
            ),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "log.dirs": str(directory / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **PROPERTIES,
            **self.properties,
        }
        file = directory / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        format_command = ["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(file)]
        done = subprocess.run(
            ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libraries()}/*", *format_command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise BrokerError(f"Apache Kafka failed to format its directory: {(done.stdout + done.stderr)[-2000:]}")

    def command(self, directory: Path, port: int) -> list[str]:  # noqa: ARG002 - the port is in the properties
        return ["java", *JVM_FLAGS, "-cp", f"{libraries()}/*", "kafka.Kafka", str(directory / "server.properties")]
