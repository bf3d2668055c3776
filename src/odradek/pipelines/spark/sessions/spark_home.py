"""A SPARK_HOME for local masters, whose Python processes import the installed PySpark.

PySpark's own has the Python files in a zip file, for which Python keeps no bytecode: every process that Spark starts
would compile PySpark first, which takes a second of processor time. Keyed state starts such a process for each query,
and on a busy machine it would miss the ten seconds within which it must connect.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import py4j
import pyspark

from odradek.pipelines.spark.sessions.jars import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "SPARK_HOME"
LINKED_FOLDERS = ("bin", "jars")
PACKAGES = {"pyspark": Path(pyspark.__file__).parent, "py4j": Path(py4j.__file__).parent}
ZIP_FILES = Path("python", "lib")
OTHER_DISTRIBUTION = "spark-distribution"  # PySpark was installed with PYSPARK_HADOOP_VERSION


@contextmanager
def quick_spark_home(master: str, distribution: Path = PACKAGES["pyspark"]) -> Iterator[None]:
    """Sets SPARK_HOME while Spark's process starts, unless the user has set it or executors run elsewhere."""
    is_own = VARIABLE in os.environ or not master.startswith("local") or (distribution / OTHER_DISTRIBUTION).exists()
    home = None if is_own else kept_home(distribution)
    if home is None:
        yield
        return
    os.environ[VARIABLE] = str(home)
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def kept_home(distribution: Path) -> Path | None:
    """The home for this distribution, made once; None if this user cannot write to the cache."""
    links = links_of(distribution)
    key = zlib.crc32(repr(sorted((str(name), str(target)) for name, target in links.items())).encode())
    home = cache_folder() / f"home-{pyspark.__version__}-{key:08x}"
    if not home.is_dir():
        with suppress(OSError):
            make_home(home, links)
    return home if home.is_dir() else None


def links_of(distribution: Path) -> dict[Path, Path]:
    """Links of the home with their targets.

    Spark puts the paths of its zip files on the workers' PYTHONPATH; folders of these names serve as well."""
    links = {Path(name): distribution / name for name in LINKED_FOLDERS}
    for zip_file in sorted((distribution / ZIP_FILES).glob("*.zip")):
        links |= {
            ZIP_FILES / zip_file.name / name: package
            for name, package in PACKAGES.items()
            if zip_file.name.startswith(name)
        }
    return links


def make_home(home: Path, links: dict[Path, Path]) -> None:
    """Makes it beside its final path, so that a concurrent process finds all links or none. Homes of environments that
    were removed are removed, too."""
    home.parent.mkdir(parents=True, exist_ok=True)
    for other in home.parent.glob("home-*"):
        if not (other / LINKED_FOLDERS[0]).exists():
            shutil.rmtree(other, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="making-") as folder:
        made = Path(folder, "home")
        for name, target in links.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).symlink_to(target)
        made.rename(home)
