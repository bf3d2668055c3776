"""Keeps the Java classes whose methods PySpark calls for every column, with the methods that were used.

PySpark asks Java for them by name at each use. To find a class by its short name, Java searches several packages in
all jars of Spark, which takes longer than most of the calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaMember

from odradek.pipelines.spark.private_names import LOOKUPS, or_plainly, private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonSQLUtils", "PythonUtils")


class KeptClass:
    """A Java class that is asked once for each of its methods."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._java_class, name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


def keep_classes(session: SparkSession) -> None:
    or_plainly(LOOKUPS, lambda: _keep(private(session, "jvm")), None)


def _keep(view: Any) -> None:
    for name in CLASSES:
        if name not in vars(view):
            vars(view)[name] = KeptClass(getattr(view, name))
