"""Starts the Spark session of a process: its settings, its log, and the Python of its workers."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from odradek.pipelines.definition.secrets import SECRET_NAME, is_secret_name
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.jars import connector_jars
from odradek.pipelines.spark.sessions.private_names import keep_classes
from odradek.pipelines.spark.sessions.spark_home import quick_spark_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


SECRET_TEXT = r"""(?s)password\s*=\s*(?:"[^"]*"|'[^']*')|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END"""
DEFAULT_MASTER = "local[*]"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
ZONE = "spark.sql.session.timeZone"

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    PROVIDER: ROCKSDB,  # keyed state needs it
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # small commits
    "spark.scheduler.mode": "FAIR",  # a busy flow does not block the others
    "spark.sql.codegen.cache.maxEntries": "2000",  # the queries of a pipeline together exceed Spark's default of 100
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),  # a record may have a megabyte
    ZONE: "UTC",  # Spark's default is the machine's: results would depend on where it runs
    "spark.log.level": "ERROR",
    # Settings that Spark's UI, event log and plans show without their values, and texts that they leave out.
    "spark.redaction.regex": f"(?i){SECRET_NAME.pattern}",
    "spark.sql.redaction.options.regex": f"(?i)url|{SECRET_NAME.pattern}",
    "spark.redaction.string.regex": SECRET_TEXT,
}
# For the few cores of one machine; a cluster keeps Spark's defaults.
LOCAL_DEFAULTS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",  # adaptive execution costs more than it saves on small batches
}
# A join of streams with this format finds the rows to evict by their time; the default reads all rows in each batch.
# Spark keeps the format of an existing checkpoint.
JOIN_FORMAT, JOIN_FORMAT_SINCE = {"spark.sql.streaming.join.stateFormatVersion": "4"}, (4, 3)
LOOPBACK = "127.0.0.1"
STANDALONE = re.compile(r"spark://(?P<host>[^:,/]+|\[[^]]+\]):(?P<port>\d+)")
# A flow may compile to one method of more than 8000 bytes, which Java would never compile.
COMPILE_LARGE_METHODS = "-XX:-DontCompileHugeMethods"
JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions")
OFFSET = re.compile(r"(?:UTC|UT|GMT)?(?P<offset>[+-]\d{1,2}(?::?\d{2})?)")
REGION = re.compile(r"[A-Za-z][\w+-]*(?:/[\w+-]+)*", re.ASCII)
HOW_TO_GET_JAVA = (
    "install it (Debian and Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17), "
    "or set JAVA_HOME to the folder of a Java 17"
)


class JavaMissing(PipelineError):
    """There is no Java."""

    retry = Retry.NEVER


def start_session(
    name: str,
    settings: Mapping[str, str],
    master: str | None = None,
    say: Callable[[str], None] = lambda _text: None,
    log_file: str = os.devnull,
    *,
    has_connector: bool = True,
) -> SparkSession:
    """Starts a session, with the connector for topics if needed; `settings` override the defaults."""
    require_java()
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # the engine reports failures of batches
    silence_query_errors()
    chosen = master_of(master, settings)
    address = own_address(chosen)
    os.environ["PYSPARK_PYTHON"] = worker_python(chosen, settings)
    if address is not None:
        os.environ.setdefault("SPARK_LOCAL_IP", address)
    fetched = connector_jars(pyspark.__version__, say) if has_connector else []
    jars = [*fetched, *filter(None, settings.get("spark.jars", "").split(","))]
    say(f"starting Spark {pyspark.__version__} on {chosen}")
    addresses = {} if address is None else {"spark.driver.bindAddress": address, "spark.driver.host": address}
    every = {**addresses, **settings_for(master, settings), "spark.jars": ",".join(jars)}
    builder = SparkSession.builder.appName(name).master(chosen)
    for key, value in every.items():
        builder = builder.config(key, value)
    with quiet(log_file):
        with quick_spark_home(chosen):
            start_java(every)
        session = builder.getOrCreate()
    keep_classes(session)
    return session


def start_java(settings: Mapping[str, str]) -> None:
    """Starts Spark's process, whose command line has the settings: those with secrets are sent to it afterwards."""
    shown = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        if not is_secret_name(name):
            shown.set(name, value)
    SparkContext._ensure_initialized(conf=shown)  # noqa: SLF001 - there is no public way


def master_of(master: str | None, settings: Mapping[str, str]) -> str:
    return master or settings.get("spark.master") or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER


def require_java() -> None:
    """Raises `JavaMissing` if Spark would not find a Java."""
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise JavaMissing(f"Spark needs Java 17, and JAVA_HOME ({home}) has none; {HOW_TO_GET_JAVA}")
    if not home and shutil.which("java") is None:
        raise JavaMissing(f"Spark needs Java 17, and there is no Java; {HOW_TO_GET_JAVA}")


def settings_for(master: str | None, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session with this master: the defaults, and those of the user, which override them.

    Options of Java come before the user's `defaultJavaOptions` and `extraJavaOptions`, so that these prevail."""
    given = {**defaults_for(master, settings), **settings}
    options = java_options(given[ZONE])
    return {**given, **{name: f"{options} {settings.get(name, '')}".rstrip() for name in JAVA_OPTIONS}}


def java_options(zone: str) -> str:
    """Options for a session time zone: Spark's JDBC reader converts timestamps by the zone of its process, so that
    both must be the same. A zone that Java cannot have is left out: Java would take it for UTC."""
    offset = OFFSET.fullmatch(zone)
    known = f"GMT{offset['offset']}" if offset is not None else zone if REGION.fullmatch(zone) else None
    return COMPILE_LARGE_METHODS if known is None else f"{COMPILE_LARGE_METHODS} -Duser.timezone={known}"


def defaults_for(master: str | None, settings: Mapping[str, str]) -> dict[str, str]:
    """The default settings of a session with this master."""
    is_local = master_of(master, settings).startswith("local")
    version = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    has_join_format = version >= JOIN_FORMAT_SINCE and settings.get(PROVIDER, ROCKSDB) == ROCKSDB
    return {**DEFAULTS, **(JOIN_FORMAT if has_join_format else {}), **(LOCAL_DEFAULTS if is_local else {})}


def own_address(master: str) -> str | None:
    """The address for workers to reach this process. Spark's default is the host name, which may not resolve."""
    if master.startswith("local"):
        return LOOPBACK
    standalone = STANDALONE.match(master)
    if standalone is None:
        return None  # other masters provide the driver's address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((standalone["host"], int(standalone["port"])))  # connecting a UDP socket sends nothing
        except OSError:
            return None
        return str(probe.getsockname()[0])


def worker_python(master: str, settings: Mapping[str, str]) -> str:
    """The Python of Spark's workers: this interpreter, unless another is configured."""
    named = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    return sys.executable if named is None or master.startswith("local") else named


def silence_query_errors() -> None:
    """Turns off PySpark's logging of query errors as JSON with stack traces; the engine reports them."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def quiet(log_file: str) -> Iterator[None]:
    """Redirects standard error to a file while Spark's process starts, because that process inherits it."""
    sys.stderr.flush()
    ours = os.dup(2)
    with open(log_file, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
