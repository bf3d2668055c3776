"""A stand-in for the rigs pipeline: the same topics in the same formats as its `pipeline.yml`, without Spark.

It has no rate of change. It is for tests of the live view: `with StandIn(bootstrap_servers): …`
"""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, Producer, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Message

LIMITS = {"pressure": (60, 150), "temperature": (-20, 75), "production": (20, 100)}
SILENT_S = 30.0
Output = tuple[str, str, dict[str, Any] | bytes | None, dict[str, str]]  # topic, key, value, headers


def iso(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def outputs(value: bytes | None, place: str, reported_s: float) -> list[Output]:
    """The output records of the pipeline for one record."""
    source = {"source": place}
    try:
        row = json.loads(value or b"null")
        pump, event = row["hcid"], {"hcid": row["hcid"], "event_id": row["event_ID"], "event_time": row["timestamp"]}
        readings = {**row["sensor_readings"], "production": row["production"]}
        if None in event.values() or not all(isinstance(readings[name], int) for name in LIMITS):
            return [("rigs-dead-letters", str(pump), value, {**source, "reason": "plausible pressure: null"})]
    except (ValueError, TypeError, LookupError) as error:
        return [("rigs-dead-letters", "", value, {**source, "reason": f"not a record: {error}"})]
    key = str(pump)
    made: list[Output] = [
        ("pressure", key, {**event, "pressure": readings["pressure"]}, source),
        ("temperature", key, {**event, "temperature": readings["temperature"]}, {}),
    ]
    for name, (lowest, highest) in LIMITS.items():
        found = readings[name]
        if not lowest <= found <= highest:
            rule, bound = (f"{name} high", highest) if found > highest else (f"{name} low", lowest)
            warned = {"hcid": pump, "rule": rule, "value": found, "bound": bound}
            made.append(("warnings", key, {**warned, "reported_at": iso(reported_s)}, {}))
    return made


class StandIn(threading.Thread):
    def __init__(self, bootstrap_servers: str, partitions: int = 3) -> None:
        super().__init__(daemon=True)
        settings = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
        self.producer = Producer({**settings, "linger.ms": 2, "message.max.bytes": 1_048_576})
        self.consumer = Consumer({**settings, "group.id": "stand-in", "fetch.wait.max.ms": 20})
        self.consumer.assign([TopicPartition("rigs", partition, 0) for partition in range(partitions)])
        self.is_stopped = threading.Event()
        self.last_heard: dict[str, float] = {}

    def run(self) -> None:
        while not self.is_stopped.is_set():
            for message in self.consumer.consume(1000, 0.02):
                if message.error() is None:
                    self.take(message)
            for pump, heard_s in list(self.last_heard.items()):
                if time.time() - heard_s > SILENT_S:
                    del self.last_heard[pump]
                    warned = {"hcid": int(pump), "rule": "silent", "value": SILENT_S, "bound": SILENT_S}
                    self.send(("warnings", pump, {**warned, "reported_at": iso(heard_s + SILENT_S)}, {}))
            self.producer.poll(0)
        self.consumer.close()
        self.producer.flush(10)

    def take(self, message: Message) -> None:
        place = f"{message.partition()}:{message.offset()}"
        for output in outputs(message.value(), place, message.timestamp()[1] / 1000):
            self.send(output)
            if output[0] == "pressure":
                self.last_heard[output[1]] = time.time()

    def send(self, output: Output) -> None:
        topic, key, value, headers = output
        encoded = json.dumps(value).encode() if isinstance(value, dict) else value
        self.producer.produce(topic, encoded, key, headers=list(headers.items()))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.is_stopped.set()
        self.join(20)
