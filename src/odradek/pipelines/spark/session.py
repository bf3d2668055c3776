"""The one Spark session of a process: quiet, on the loopback address, with Python workers of this interpreter."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql import SparkSession

from odradek.pipelines.definition.vocabulary import Connector
from odradek.pipelines.spark.connector_choice import CHOICE, choose_connector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DEFAULT_MASTER = "local[*]"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",  # plans of small batches are not worth a second thought
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,  # keyed state needs it
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # a commit is a small file
    "spark.scheduler.mode": "FAIR",  # a flow with much to do does not hold up the others
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),  # ten thousand records may be of a megabyte each
    "spark.log.level": "ERROR",
}
# Spark finds out its own name by asking for it, which fails on machines without a resolver.
LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def start_session(
    name: str,
    settings: Mapping[str, str],
    master: str | None = None,
    say: Callable[[str], None] = lambda _text: None,
    log_file: str = os.devnull,
    connector: Connector | None = None,
) -> SparkSession:
    """A session that reads and writes topics; `settings` come before ours."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what a batch dies of is told by its engine
    chosen = master or settings.get("spark.master") or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER
    is_local = chosen.startswith("local")
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    connector, fetched = choose_connector(connector, pyspark.__version__, say)
    jars = [*fetched, *filter(None, settings.get("spark.jars", "").split(","))]
    reader = "" if connector is Connector.JVM else ", with the Python source for topics"
    say(f"starting Spark {pyspark.__version__} on {chosen}{reader}")
    every = {
        **DEFAULTS,
        **(LOOPBACK if is_local else {}),
        **settings,
        CHOICE: str(connector),
        "spark.jars": ",".join(jars),
    }
    builder = SparkSession.builder.appName(name).master(chosen)
    for key, value in every.items():
        builder = builder.config(key, value)
    with quiet(log_file):
        return builder.getOrCreate()


@contextmanager
def quiet(log_file: str) -> Iterator[None]:
    """Spark's process inherits our standard error when it starts, and writes there for ever: it gets a file instead."""
    sys.stderr.flush()
    ours = os.dup(2)
    with open(log_file, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
