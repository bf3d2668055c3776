"""Spark's classes as an archive of the JVM (class data sharing), made once for each PySpark and Java.

Almost half of what a Spark costs until the end of its first batch is the loading of classes.
"""

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pyspark

from tests.jvm.build_cache import build_once, cache_directory

SETTINGS = Path(__file__).parent.parent / "spark_conf" / "spark-defaults.conf"
QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
DRIVER = "spark.driver.extraJavaOptions"
REHEARSAL = """
import sys
from odradek.pipelines.spark.session import start_session

folder = sys.argv[1]
session = start_session("rehearsal", {}, "local[2]")
session.range(100).selectExpr("id", "id % 7 as part", "to_json(struct(id)) as text").write.json(f"{folder}/in")
stream = session.readStream.schema("id BIGINT, part BIGINT, text STRING").json(f"{folder}/in")
counted = stream.groupBy("part").agg({"id": "sum"}).writeStream.outputMode("update")
written = counted.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
written.foreachBatch(lambda batch, _number: batch.toPandas()).start().awaitTermination()
session.stop()
"""


def use_archive() -> None:
    """Every Spark that this process starts from now on."""
    java = shutil.which("java")
    if java is None:
        return  # who needs Spark is told so
    name = f"spark-{pyspark.__version__}-{Path(java).resolve().parent.parent.name}"
    kept = cache_directory() / f"{name}-{zlib.crc32(pyspark.__file__.encode()):08x}"
    os.environ.update(environment(build_once(kept, [Path(__file__), SETTINGS], make), "classes.conf"))


def make(directory: Path) -> None:
    """The JVM writes its archive when it ends, a little after Python; its output is open until then."""
    archive = directory / "classes.jsa"
    (directory / "conf").mkdir()
    for name, option in {"making.conf": "ArchiveClassesAtExit", "classes.conf": "SharedArchiveFile"}.items():
        lines = SETTINGS.read_text().splitlines()
        told = [f"{line} -XX:{option}={archive} {QUIET}" if line.startswith(DRIVER) else line for line in lines]
        (directory / name).write_text("\n".join(told))
    command = [sys.executable, "-c", REHEARSAL, str(directory / "rehearsal")]
    own = {**os.environ, **environment(directory, "making.conf")}
    subprocess.run(command, env=own, check=True, capture_output=True, timeout=300)
    shutil.rmtree(directory / "rehearsal")


def environment(directory: Path, settings: str) -> dict[str, str]:
    """Spark puts its folder of settings on the class path, where an archive allows empty folders only."""
    submit = f"--properties-file {directory / settings} pyspark-shell"
    return {"SPARK_CONF_DIR": str(directory / "conf"), "PYSPARK_SUBMIT_ARGS": submit}
