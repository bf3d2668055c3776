"""Starts Odradek for one of Apache Kafka's own tests: `launch.py PORT SERVER_PROPERTIES DATA_DIRECTORY`."""

import os
import sys


def main() -> None:
    port, properties, data_directory = sys.argv[1:]
    command = [sys.executable, "-m", "odradek", "broker", properties]
    command += ["--override", f"listeners=PLAINTEXT://127.0.0.1:{port}", "--override", f"log.dirs={data_directory}"]
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main()
