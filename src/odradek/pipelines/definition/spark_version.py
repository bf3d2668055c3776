"""The installed version of PySpark, read without starting Spark."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from odradek.pipelines.definition.vocabulary import LakehouseFormat

REALTIME_SINCE = (4, 3)
LAKEHOUSE_SPARK = "4.1"  # the one for which both libraries exist
LAKEHOUSE_LIBRARIES = {LakehouseFormat.DELTA: "Delta 4.1.0", LakehouseFormat.ICEBERG: "Iceberg 1.11.0"}
LAKEHOUSE_HINT = "install pyspark==4.1.1, or name a library for this Spark: spark: {spark.jars.packages: …}"
REALTIME_HINT = "install pyspark==4.3.0, or use engine: standard"


def installed_version() -> str | None:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


def realtime_refusal() -> str | None:
    """Why the installed PySpark cannot run the realtime engine; None if it can, or if PySpark is not installed."""
    installed = installed_version()
    if installed is None or tuple(map(int, installed.split(".")[:2])) >= REALTIME_SINCE:
        return None
    return f"the realtime engine needs PySpark 4.3, and {installed} is installed"


def lakehouse_refusal(wanted: LakehouseFormat) -> str | None:
    """Why the installed PySpark has no library for this format; None if it has, or if PySpark is not installed."""
    installed = installed_version()
    if installed is None or installed.startswith(f"{LAKEHOUSE_SPARK}."):
        return None
    return f"{LAKEHOUSE_LIBRARIES[wanted]} exists for PySpark {LAKEHOUSE_SPARK}, and {installed} is installed"
