"""Makes Spark load the classes that the tests of pipelines need: `python -m tests.jvm.spark_rehearsal FOLDER`.

It runs a case with each kind of step and sink, and copies a topic with Spark's connector.
"""

import sys
from pathlib import Path

from confluent_kafka import Producer

from odradek.pipelines.spark.sessions.session import start_session
from odradek.pipelines.trial.parsing import read_case_file
from odradek.pipelines.trial.running import run_file
from odradek.testing import RunningBroker

DEFINITION = """
pipeline: rehearsal
dead_letters: dead
warehouse: sqlite:///w.db
sources:
  readings:
    topic: in
    schema: "id BIGINT NOT NULL, pump BIGINT, at TIMESTAMP, pressure DOUBLE"
    watermark: {column: at, delay: 10 seconds}
  orders:
    topic: orders
    schema: "pump BIGINT, ordered TIMESTAMP"
    watermark: {column: ordered, delay: 10 seconds}
  pumps: {files: {path: pumps.csv, format: csv}, schema: "pump BIGINT, name STRING"}
steps:
  unique: {from: readings, deduplicate: {key: [id], within: 10 seconds}}
  good:
    sql: select id, pump, at, pressure from unique
    expect: {positive: {check: pressure > 0, otherwise: quarantine}}
  named: {sql: select * from good left join pumps using (pump)}
  minutes: {from: readings, window: {column: at, size: 1 minute}, by: [pump], aggregate: {events: count(*)}}
  matched: {from: readings, join: {stream: orders, on: pump, within: 1 minute, how: inner}}
  counted:
    from: good
    state: {key: [pump], processor: "own_steps:Counter", order: any}
    schema: pump BIGINT, seen BIGINT
sinks:
  out: {from: named, topic: out, key: id}
  minutes: {from: minutes, topic: minutes}
  matched: {from: matched, topic: matched}
  archive: {from: named, files: {path: archive, format: parquet}}
  seen: {from: counted, table: seen, key: [pump], order_by: [seen]}
views:
  totals: {from: good, by: [pump], aggregate: {events: count(*), highest: max(pressure)}}
"""
OWN_STEPS = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Counter(StatefulProcessor):
    def init(self, handle):
        self.seen = handle.getValueState("seen", "n BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        yield Row(pump=key[0], seen=sum(1 for _ in rows))
"""
CASES = """
cases:
  all:
    given:
      readings:
        - {id: 1, pump: 1, at: "2026-01-01 12:00:00", pressure: 10}
        - {id: 3, pump: 1, at: "2026-01-01 12:00:00", pressure: -1}
      orders: [{pump: 1, ordered: "2026-01-01 12:00:10"}]
    expect: {sinks: {out: [{id: 1, name: one}], seen: [{pump: 1, seen: 1}]}, views: {totals: [{pump: 1, events: 1}]}}
"""


def write_files(folder: Path) -> str:
    """Writes the definition, its cases and its data; returns the path of the cases."""
    folder.mkdir()
    for name, text in {
        "p.yml": DEFINITION,
        "own_steps.py": OWN_STEPS,
        "p.test.yml": CASES,
        "pumps.csv": "pump,name\n1,one\n",
    }.items():
        (folder / name).write_text(text)
    return str(folder / "p.test.yml")


def rehearse(folder: Path) -> None:
    cases = write_files(folder)
    session = start_session("rehearsal", {}, "local[2]")
    (result,) = run_file(session, read_case_file(cases, {}))
    if result.differences:
        raise SystemExit(f"the rehearsal does not work: {result.differences}")
    with RunningBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("in", b"x")
        producer.flush(30)
        servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        read = session.readStream.format("kafka").options(**servers, subscribe="in", startingOffsets="earliest")
        copy = read.load().writeStream.format("kafka").options(**servers, topic="out")
        stored = copy.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
        stored.start().awaitTermination()
    session.stop()


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]))
