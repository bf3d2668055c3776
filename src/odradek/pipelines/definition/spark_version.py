"""The installed version of PySpark, read without starting Spark."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

REALTIME_SINCE = (4, 3)
REALTIME_HINT = "install pyspark==4.3.0, or use engine: standard"


def realtime_refusal() -> str | None:
    """Why the installed PySpark cannot run the realtime engine; None if it can, or if PySpark is not installed."""
    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        return None
    major, minor, *_ = installed.split(".")
    if (int(major), int(minor)) >= REALTIME_SINCE:
        return None
    return f"the realtime engine needs PySpark 4.3, and {installed} is installed"
