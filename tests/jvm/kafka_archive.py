"""Classes of Apache Kafka's clients and tools as an archive of the JVM (class data sharing), made once for each Java.

Without it, loading classes takes most of the processor time of a JVM that lives for seconds.
"""

import json
import shutil
import subprocess
import warnings
import zlib
from pathlib import Path

from odradek.testing import RunningBroker
from tests.jvm.build_cache import build_once, cache_directory, content_digest

QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
REHEARSED = "odradek.ToolSession"


def archive_flags(class_path: str, sources: list[Path]) -> list[str]:
    """The flags by which a JVM with this class path uses the archive; without an archive it starts more slowly."""
    java = shutil.which("java") or "java"
    version = subprocess.run([java, "-version"], check=True, capture_output=True).stderr  # an archive is for one build
    key = zlib.crc32(version + str(Path(java).resolve()).encode() + class_path.encode())
    inputs = [Path(__file__), *sources]
    kept = cache_directory() / f"kafka-classes-{key:08x}-{content_digest(inputs)}"
    try:
        directory = build_once(kept, inputs, lambda made: rehearse(made / "kafka.jsa", class_path))
    except (subprocess.SubprocessError, OSError) as problem:
        warnings.warn(f"Java starts without an archive of Apache Kafka's classes: {problem}", stacklevel=1)
        return [*FLAGS, "-Xshare:auto"]
    return [*FLAGS, f"-XX:SharedArchiveFile={directory / 'kafka.jsa'}", *QUIET]


def rehearse(archive: Path, class_path: str) -> None:
    """Runs tools in one JVM, which writes the classes that it has loaded when it ends."""
    flags = [*FLAGS, f"-XX:ArchiveClassesAtExit={archive}", *QUIET]
    with RunningBroker() as broker:
        server = ["--bootstrap-server", broker.bootstrap_servers]
        topic, group = ["--topic", "rehearsal"], ["--group", "rehearsal"]
        calls = [
            ("org.apache.kafka.tools.TopicCommand", [*server, "--create", *topic], ""),
            ("org.apache.kafka.tools.ConsoleProducer", [*server, *topic], "a\n"),
            (
                "org.apache.kafka.tools.consumer.ConsoleConsumer",
                [*server, *topic, *group, "--from-beginning", "--max-messages", "1"],
                "",
            ),
            ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", [*server, "--describe", *group], ""),
        ]
        questions = [json.dumps({"class": tool, "arguments": words, "input": text}) for tool, words, text in calls]
        command = ["java", "-Xmx256m", *flags, "-cp", class_path, REHEARSED]
        text = "\n".join([*questions, ""])
        subprocess.run(command, input=text, text=True, check=True, capture_output=True, timeout=300)
    archive.stat()  # or there is none
