"""Starts Odradek for one of Apache Kafka's own tests: `launch.py PORT SERVER_PROPERTIES DATA_DIRECTORY...`.

LISTENER_PROTOCOL is the security protocol of its listener.
"""

import os
import sys
from pathlib import Path

# Names in Kafka's tests that no version of Kafka knows. Kafka ignores them; Odradek refuses unknown properties.
# ProducerFailureHandlingTest gives the description of replica.fetch.response.max.bytes in place of its name.
NOT_OF_KAFKA = (
    "log.unclean.leader.election.enable=",
    "file.delete.delay.ms=",
    "Maximum bytes expected",
    r"Maximum\ bytes\ expected",
)


def main() -> None:
    port, properties, *data_directories = sys.argv[1:]
    protocol = os.environ.get("LISTENER_PROTOCOL", "PLAINTEXT")
    lines = Path(properties).read_text().splitlines(keepends=True)
    Path(properties).write_text("".join(line for line in lines if not line.startswith(NOT_OF_KAFKA)))
    command = [sys.executable, "-m", "odradek", "broker", properties]
    command += [
        "--override",
        f"listeners={protocol}://127.0.0.1:{port}",
        "--override",
        f"log.dirs={','.join(data_directories)}",
    ]
    if "ZOOKEEPER_CONNECT" in os.environ:  # the host that brokers of Apache Kafka's test kit have
        command += ["--override", f"advertised.listeners={protocol}://localhost:{port}"]
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main()
