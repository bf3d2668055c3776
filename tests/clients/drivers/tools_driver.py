"""The scenario's verbs by Apache Kafka's command-line tools: what a user types, and what the tool prints, parsed."""

import json
import re
import tempfile
from typing import TYPE_CHECKING

from tests.clients.drivers.client_security import properties_path
from tests.clients.scenario.steps import Json, shown_bytes, written_bytes
from tests.jvm.tools import ToolResult, ToolSession

if TYPE_CHECKING:
    from collections.abc import Callable

DONE = {"error": "NONE"}
FIELD, RECORD, NULL = "\x1f", "\x1e\n", "\x1dnull"  # separators that no record of the scenario contains
PLACES = {"earliest": "-2", "latest": "-1", "max_timestamp": "-3"}
EXCEPTIONS = {
    "InvalidConfiguration": "INVALID_CONFIG",
    "InvalidPartitions": "INVALID_PARTITIONS",
    "InvalidRecord": "INVALID_RECORD",
    "InvalidReplicationFactor": "INVALID_REPLICATION_FACTOR",
    "InvalidRequest": "INVALID_REQUEST",
    "InvalidTimestamp": "INVALID_TIMESTAMP",
    "InvalidTopic": "INVALID_TOPIC_EXCEPTION",
    "OffsetOutOfRange": "OFFSET_OUT_OF_RANGE",
    "RecordTooLarge": "MESSAGE_TOO_LARGE",
    "TopicExists": "TOPIC_ALREADY_EXISTS",
    "UnknownTopicOrPartition": "UNKNOWN_TOPIC_OR_PARTITION",
}


class Refused(Exception):
    """A tool that reported an error of the broker."""


def _error_in(text: str) -> str | None:
    found = re.search(r"org\.apache\.kafka\.(?:common\.errors|common|clients\.consumer)\.(\w+)Exception", text)
    if found:
        return EXCEPTIONS.get(found[1], found[0])
    return "UNKNOWN_TOPIC_OR_PARTITION" if "does not exist" in text else None


class ToolsDriver:
    def __init__(self, bootstrap_servers: str) -> None:
        security = properties_path()
        self._bootstrap = (
            "--bootstrap-server", bootstrap_servers, *(("--command-config", security) if security else ())
        )  # fmt: skip
        self._tools = ToolSession()

    def perform(self, verb: str, arguments: dict[str, Json]) -> Json:
        act: Callable[[dict[str, Json]], Json] = getattr(self, verb)
        try:
            return act(arguments)
        except Refused as refusal:
            return [{"error": str(refusal)}] if verb == "produce" else {"error": str(refusal)}

    def close(self) -> None:
        self._tools.close()

    def _run(self, tool: str, *arguments: str, standard_input: str = "") -> ToolResult:
        result = self._tools.run(tool, *self._bootstrap, *arguments, standard_input=standard_input)
        error = _error_in(result.output + result.errors)
        if result.status != 0 or error:
            raise Refused(error or f"status {result.status}: {result.output[-600:]} {result.errors[-600:]}")
        return result

    # ---- kafka-cluster, kafka-broker-api-versions, kafka-topics

    def cluster(self, arguments: dict[str, Json]) -> Json:
        printed = self._tools.run("kafka-cluster", "cluster-id", *self._bootstrap).checked()
        brokers = self._run("kafka-broker-api-versions").output
        nodes = [int(each) for each in re.findall(r"\(id: (\d+) rack:", brokers)]
        return {"cluster_id": printed.removeprefix("Cluster ID: ").strip(), "nodes": nodes}

    def create_topic(self, arguments: dict[str, Json]) -> Json:
        options = ["--create", "--topic", arguments["topic"]]
        if arguments["partitions"] != -1:
            options += ["--partitions", str(arguments["partitions"])]
        if arguments["replication_factor"] != -1:
            options += ["--replication-factor", str(arguments["replication_factor"])]
        for name, value in arguments["configs"].items():
            options += ["--config", f"{name}={value}"]
        self._run("kafka-topics", *options)
        return DONE

    def delete_topic(self, arguments: dict[str, Json]) -> Json:
        self._run("kafka-topics", "--delete", "--topic", arguments["topic"])
        return DONE

    def list_topics(self, arguments: dict[str, Json]) -> Json:
        return self._run("kafka-topics", "--list").output.split()

    def describe_topic(self, arguments: dict[str, Json]) -> Json:
        first, *lines = self._run("kafka-topics", "--describe", "--topic", arguments["topic"]).output.splitlines()
        partitions = []
        for line in lines:
            found = re.search(r"Partition: (\d+)\tLeader: (\d+)\tReplicas: ([\d,]+)\tIsr: ([\d,]+)\tElr: \t", line)
            if found is None:
                raise Refused(f"unreadable: {line}")
            replicas, in_sync = ([int(each) for each in found[index].split(",")] for index in (3, 4))
            leader = int(found[2])
            partitions.append({"partition": int(found[1]), "leader": leader, "replicas": replicas, "in_sync": in_sync})
        found = re.search(r"TopicId: (\S+)\tPartitionCount: (\d+)", first)
        if found is None or int(found[2]) != len(partitions):
            raise Refused(f"unreadable: {first}")
        return {"error": "NONE", "topic_id": found[1], "partitions": partitions}

    def create_partitions(self, arguments: dict[str, Json]) -> Json:
        self._run("kafka-topics", "--alter", "--topic", arguments["topic"], "--partitions", str(arguments["count"]))
        return DONE

    # ---- kafka-configs

    def _entity(self, arguments: dict[str, Json]) -> list[str]:
        if arguments["resource"] == "topic":
            return ["--entity-type", "topics", "--entity-name", arguments["topic"]]
        if arguments["resource"] == "broker-default":
            return ["--entity-type", "brokers", "--entity-default"]
        (node_id,) = self.cluster({})["nodes"]
        return ["--entity-type", "brokers", "--entity-name", str(node_id)]

    def describe_configs(self, arguments: dict[str, Json]) -> Json:
        printed = self._run("kafka-configs", "--describe", "--all", *self._entity(arguments)).output
        configs = {}
        for name, value, sensitive, synonyms in re.findall(
            r"^  (\S+?)=(.*?) sensitive=(\w+) synonyms=\{(.*)\}$", printed, re.MULTILINE
        ):
            if name in arguments["keys"]:
                # the first synonym is the one in force; none means that the value is built in
                source = synonyms.split(":", 1)[0] or "DEFAULT_CONFIG"
                configs[name] = {"value": value, "source": source, "sensitive": sensitive == "true"}
        return {"error": "NONE", "configs": configs}

    def alter_configs(self, arguments: dict[str, Json]) -> Json:
        added = [f"{key}=[{value}]" for operation, key, value in arguments["operations"] if operation == "set"]
        deleted = [key for operation, key, _value in arguments["operations"] if operation == "delete"]
        options = [*(["--add-config", ",".join(added)] if added else [])]
        options += [*(["--delete-config", ",".join(deleted)] if deleted else [])]
        self._run("kafka-configs", "--alter", *self._entity(arguments), *options)
        return DONE

    # ---- kafka-console-producer, kafka-console-consumer

    def produce(self, arguments: dict[str, Json]) -> Json:
        lines = []
        for each in arguments["records"]:
            headers = ",".join(f"{name}:{value}" for name, value in each["headers"]) or NULL
            key, value = (NULL if part is None else _text(part) for part in (each["key"], each["value"]))
            lines.append(f"{headers}{FIELD}{key}{FIELD}{value}\n")
        place = {"topic": arguments["topic"], "partition": 0, "at": "latest"}
        first = self._end(place)
        properties = {"parse.headers": "true", "parse.key": "true", "null.marker": NULL}
        properties |= {"headers.delimiter": FIELD, "key.separator": FIELD}
        options = [part for name, value in properties.items() for part in ("--reader-property", f"{name}={value}")]
        options += ["--compression-codec", arguments["codec"], "--max-block-ms", "20000"]
        # Its own 1.5 s and three attempts are few for a busy machine and a topic that is just being made.
        options += ["--request-timeout-ms", "20000", "--message-send-max-retries", "100"]
        options += ["--request-required-acks", str(arguments["acks"]), "--command-property", "max.request.size=4000000"]
        self._run("kafka-console-producer", "--topic", arguments["topic"], *options, standard_input="".join(lines))
        written = self.offset(place)["offset"] - first
        if written != len(lines):
            raise Refused(f"{written} of {len(lines)} records were written")
        return [{"offset": first + index} for index in range(written)]

    def _end(self, place: dict[str, Json]) -> int:
        """The offset that comes next; 0 also where the topic will be made by producing to it."""
        try:
            return int(self.offset(place)["offset"])
        except Refused:
            return 0

    def consume(self, arguments: dict[str, Json]) -> Json:
        records = []
        for partition, start in arguments["assignments"]:
            place = {"topic": arguments["topic"], "partition": partition}
            if isinstance(start, dict):
                offset = str(self.offset({**place, "at": start["timestamp"]})["offset"])
            else:
                offset = "earliest" if start == "beginning" else str(start)
            first, end = (self.offset({**place, "at": at})["offset"] for at in ("earliest", "latest"))
            begin = int(offset) if offset.isdigit() and first <= int(offset) <= end else first
            records += self._consume_partition(arguments, partition, offset, min(arguments["count"], end - begin))
        return {"records": records}

    def _consume_partition(self, arguments: dict[str, Json], partition: int, offset: str, count: int) -> list[Json]:
        shown = ("timestamp", "partition", "offset", "headers", "key", "value")
        properties = {f"print.{each}": "true" for each in shown}
        properties |= {
            "key.separator": FIELD,
            "line.separator": RECORD,
            "null.literal": NULL,
            "headers.separator": "\x1c",
        }
        options = [part for name, value in properties.items() for part in ("--formatter-property", f"{name}={value}")]
        options += ["--partition", str(partition), "--offset", offset, "--max-messages", str(count)]
        options += ["--timeout-ms", "30000", "--command-property", f"auto.offset.reset={arguments['reset']}"]
        options += ["--isolation-level", arguments.get("isolation", "read_uncommitted")]
        printed = self._run("kafka-console-consumer", "--topic", arguments["topic"], *options).output
        return [_shown(line.split(FIELD)) for line in printed.split(RECORD)[:-1]]

    # ---- kafka-get-offsets, kafka-delete-records

    def offset(self, arguments: dict[str, Json]) -> Json:
        at, partition = arguments["at"], f"{arguments['topic']}:{arguments['partition']}"
        options = ["--topic-partitions", partition, "--time", PLACES.get(at, str(at))]
        printed = self._run("kafka-get-offsets", *options).output.strip()
        return {"offset": int(printed.rsplit(":", 1)[1]) if printed else -1}

    def delete_records(self, arguments: dict[str, Json]) -> Json:
        partition = {"topic": arguments["topic"], "partition": arguments["partition"], "offset": arguments["before"]}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"version": 1, "partitions": [partition]}, file)
            file.flush()
            printed = self._run("kafka-delete-records", "--offset-json-file", file.name).output
        found = re.search(r"low_watermark: (\d+)", printed)
        if found is None:
            raise Refused(f"unreadable: {printed}")
        return {"error": "NONE", "low_watermark": int(found[1])}


def _text(value: Json) -> str:
    return (written_bytes(value) or b"").decode("latin-1")


def _shown(fields: list[str]) -> Json:
    """A line of the console consumer: CreateTime:1 | Partition:0 | Offset:0 | name:value… | key | value."""
    time, partition, offset, headers, key, value = fields
    kind, timestamp = time.split(":")
    pairs = [] if headers == "NO_HEADERS" else [each.split(":", 1) for each in headers.split("\x1c")]
    return {
        "partition": int(partition.removeprefix("Partition:")),
        "offset": int(offset.removeprefix("Offset:")),
        "timestamp": int(timestamp),
        "timestamp_type": {"CreateTime": "CREATE_TIME", "LogAppendTime": "LOG_APPEND_TIME"}[kind],
        "key": _bytes(key),
        "value": _bytes(value),
        "headers": [[name, _bytes(content)] for name, content in pairs],
    }


def _bytes(text: str) -> Json:
    return None if text == NULL else shown_bytes(text.encode("latin-1"))
