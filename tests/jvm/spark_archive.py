"""Spark's classes as an archive of the JVM (class data sharing), made once for each PySpark and Java.

Loading classes takes almost half of the processor time that Spark needs until the end of its first batch.
"""

import os
import shutil
import subprocess
import sys
import warnings
import zipfile
import zlib
from pathlib import Path

import pyspark

from tests.jvm.build_cache import build_once, cache_directory, content_digest

SETTINGS = Path(__file__).parent.parent / "spark_conf" / "spark-defaults.conf"
QUICK_FILES = Path(__file__).parent / "spark" / "QuickFiles.java"
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
    """Make every Spark that this process starts use the archive."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return  # tests that need Spark report it
    version = subprocess.run([java, "-version"], check=True, capture_output=True).stderr  # an archive is for one build
    key = zlib.crc32(version + str(Path(java).resolve()).encode() + pyspark.__file__.encode())
    sources = [Path(__file__), SETTINGS, QUICK_FILES]
    # A directory per content: a concurrent run of another checkout may use an archive of its own.
    kept = cache_directory() / f"spark-{pyspark.__version__}-{key:08x}-{content_digest(sources)}"
    try:
        directory = build_once(kept, sources, make)
    except (subprocess.SubprocessError, OSError) as problem:
        output = getattr(problem, "stderr", None) or b""
        warnings.warn(f"Spark starts without an archive: {problem} {output.decode(errors='replace')}", stacklevel=1)
        return
    os.environ.update(environment(directory, "classes.conf"))


def make(directory: Path) -> None:
    """The JVM writes its archive when it ends, a little after Python; its output is open until then."""
    archive = directory / "classes.jsa"
    files = quick_files(directory)
    (directory / "conf").mkdir()
    for name, option in {"making.conf": "ArchiveClassesAtExit", "classes.conf": "SharedArchiveFile"}.items():
        lines = [*SETTINGS.read_text().splitlines(), *files]
        settings = [f"{line} -XX:{option}={archive} {QUIET}" if line.startswith(DRIVER) else line for line in lines]
        (directory / name).write_text("\n".join(settings))
    command = [sys.executable, "-c", REHEARSAL, str(directory / "rehearsal")]
    own = {**os.environ, **environment(directory, "making.conf")}
    subprocess.run(command, env=own, check=True, capture_output=True, timeout=300)
    shutil.rmtree(directory / "rehearsal")
    archive.stat()  # or there is none


def quick_files(directory: Path) -> list[str]:
    """Settings for a local file system that starts no process for each file; none without a Java compiler."""
    javac = shutil.which("javac")
    if javac is None:
        return []
    libraries = Path(pyspark.__file__).parent / "jars"
    api = next(libraries.glob("hadoop-client-api-*.jar"))
    classes, jar = directory / "files", directory / "files.jar"  # an archive allows no folders on the class path
    command = [javac, "-nowarn", "-Xlint:none", "-d", str(classes), "-cp", str(api), str(QUICK_FILES)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    with zipfile.ZipFile(jar, "w") as file:
        for each in classes.rglob("*.class"):
            file.write(each, each.relative_to(classes))
    return [
        f"spark.driver.extraClassPath {jar}",
        f"spark.executor.extraClassPath {jar}",
        "spark.hadoop.fs.file.impl odradek.tests.QuickFiles",
    ]


def environment(directory: Path, settings: str) -> dict[str, str]:
    """Spark puts its folder of settings on the class path, where an archive allows empty folders only."""
    submit = f"--properties-file {directory / settings} pyspark-shell"
    return {"SPARK_CONF_DIR": str(directory / "conf"), "PYSPARK_SUBMIT_ARGS": submit}
