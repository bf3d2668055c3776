"""Spark's classes as an archive of the JVM (class data sharing), made once for each PySpark and Java.

Loading classes takes almost half of the processor time that Spark needs until the end of its first batch. An archive is
for jars with the same paths and dates, so Spark runs from a copy of PySpark's jars beside the archive: every checkout
on the machine uses it, whatever the path of its environment.
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

from odradek.pipelines.spark.sessions.jars import JarsMissing, connector_jars
from tests.jvm.build_cache import build_once, cache_directory, content_digest

SETTINGS = Path(__file__).parent.parent / "spark_conf" / "spark-defaults.conf"
QUICK_FILES = Path(__file__).parent / "spark" / "QuickFiles.java"
QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
DRIVER = "spark.driver.extraJavaOptions"
REHEARSAL = Path(__file__).parent / "spark_rehearsal.py"
ROOT = Path(__file__).parents[2]
PYSPARK = Path(pyspark.__file__).parent
HOME_FOLDERS = ("bin", "jars")  # what SPARK_HOME must have
ZIP_FILES = Path("python", "lib")


def use_archive() -> None:
    """Make every Spark that this process starts use the archive."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return  # tests that need Spark report it
    sources = [Path(__file__), REHEARSAL, SETTINGS, QUICK_FILES]
    kept = archive_directory(java, PYSPARK, sources)
    try:
        directory = build_once(kept, sources, make)
    except (subprocess.SubprocessError, OSError) as problem:
        output = getattr(problem, "stderr", None) or b""
        warnings.warn(f"Spark starts without an archive: {problem} {output.decode(errors='replace')}", stacklevel=1)
        return
    os.environ.update(environment(directory, "classes.conf"))


def archive_directory(java: str, distribution: Path, sources: list[Path]) -> Path:
    """A directory per content: a concurrent run of another checkout may use an archive of its own."""
    version = subprocess.run([java, "-version"], check=True, capture_output=True).stderr  # an archive is for one build
    jars = sorted((jar.name, jar.stat().st_size) for jar in (distribution / "jars").iterdir())
    key = zlib.crc32(version + str(Path(java).resolve()).encode() + repr(jars).encode())
    return cache_directory() / f"spark-{pyspark.__version__}-{key:08x}-{content_digest(sources)}"


def make(directory: Path) -> None:
    """The JVM writes its archive when it ends, a little after Python; its output is open until then."""
    archive = directory / "classes.jsa"
    copy_distribution(PYSPARK, directory / "home")
    jars, files = quick_files(directory)
    jars += connector()
    path = os.pathsep.join(jars)
    files += [f"spark.{process}.extraClassPath {path}" for process in ("driver", "executor") if path]
    (directory / "conf").mkdir()
    for name, option in {"making.conf": "ArchiveClassesAtExit", "classes.conf": "SharedArchiveFile"}.items():
        lines = [*SETTINGS.read_text().splitlines(), *files]
        settings = [f"{line} -XX:{option}={archive} {QUIET}" if line.startswith(DRIVER) else line for line in lines]
        (directory / name).write_text("\n".join(settings))
    command = [sys.executable, "-m", "tests.jvm.spark_rehearsal", str(directory / "rehearsal")]
    own = {**os.environ, **environment(directory, "making.conf")}
    subprocess.run(command, cwd=ROOT, env=own, check=True, capture_output=True, timeout=600)
    shutil.rmtree(directory / "rehearsal")
    archive.stat()  # or there is none


def copy_distribution(distribution: Path, home: Path) -> None:
    """Hard links where the file system allows them: the jars take 460 MB, and outlive the environment of a checkout.

    The zip files of Python's packages become folders of the same names, as in the package's `sessions/spark_home`."""
    for folder in HOME_FOLDERS:
        shutil.copytree(distribution / folder, home / folder, copy_function=link_or_copy)
    for packed in (distribution / ZIP_FILES).glob("*.zip"):
        with zipfile.ZipFile(packed) as file:
            file.extractall(home / ZIP_FILES / packed.name)


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def quick_files(directory: Path) -> tuple[list[str], list[str]]:
    """A jar and a setting for a local file system that starts no process for each file; none without a compiler."""
    javac = shutil.which("javac")
    if javac is None:
        return [], []
    api = next((PYSPARK / "jars").glob("hadoop-client-api-*.jar"))
    classes, jar = directory / "files", directory / "files.jar"  # an archive allows no folders on the class path
    command = [javac, "-nowarn", "-Xlint:none", "-d", str(classes), "-cp", str(api), str(QUICK_FILES)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    with zipfile.ZipFile(jar, "w") as file:
        for each in classes.rglob("*.class"):
            file.write(each, each.relative_to(classes))
    return [str(jar)], ["spark.hadoop.fs.file.impl odradek.tests.QuickFiles"]


def connector() -> list[str]:
    """The jars of Spark's connector; an archive has no classes of jars that Spark adds after its start."""
    try:
        return connector_jars(pyspark.__version__, lambda _text: None)
    except JarsMissing:
        return []  # tests that need the connector report it


def environment(directory: Path, settings: str) -> dict[str, str]:
    """Spark puts its folder of settings on the class path, where an archive allows empty folders only."""
    submit = f"--properties-file {directory / settings} pyspark-shell"
    conf, home = str(directory / "conf"), str(directory / "home")
    return {"SPARK_HOME": home, "SPARK_CONF_DIR": conf, "PYSPARK_SUBMIT_ARGS": submit}
