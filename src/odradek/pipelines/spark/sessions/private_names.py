"""Every private name of Spark that this package uses, what it is used for, and what is done without it.

Private names may change with any release of Spark. All of them are looked up here, by the key of `NAMES`. If one is
missing, the pipeline runs in the plain way, and a warning says so once.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import pyspark
from py4j.java_gateway import JavaMember
from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession


Result = TypeVar("Result")
LOG = logging.getLogger("odradek.pipelines")


@dataclass(frozen=True, slots=True)
class Use:
    """What private names are used for, and what is done without them."""

    purpose: str
    fallback: str


PLANNING = Use("optimize the plan of a query once, before it starts", "Spark optimizes the plan of every batch")
ANALYSING = Use("find in a plan what the promise does not allow", "the plan is refused")
ROW_ERRORS = Use("catch values of a row that cannot be computed", "pipelines with such expressions are refused")
LOOKUPS = Use("find the Java classes of PySpark's functions once", "PySpark finds them again for every column")
CHECKPOINTS = Use("write local checkpoints without starting processes", "Spark's default writes the checkpoints")
OPERATORS = Use("let Spark check a query that sorts its batches", "Spark does not check such a query")
PROGRESS = Use("read the progress of new batches only", "the progress of all recent batches is read each time")
PROCESSORS = Use("count the threads of the master local[*]", "Spark's default parallelism is taken for their number")
STORAGE = Use("reach checkpoints through Hadoop", "checkpoints on other storage than a local disk cannot be used")


@dataclass(frozen=True, slots=True)
class PrivateName:
    """A name of PySpark, or of Spark's Scala classes, that is not part of the public API."""

    path: str
    use: Use


NAMES = {
    "frame": PrivateName("_jdf", PLANNING),
    "session": PrivateName("_jsparkSession", PLANNING),
    "jvm": PrivateName("_jvm", PLANNING),
    "execution": PrivateName("queryExecution", PLANNING),
    "analyzed": PrivateName("analyzed", PLANNING),
    "is streaming": PrivateName("isStreaming", ANALYSING),
    "node": PrivateName("nodeName", ANALYSING),
    "children": PrivateName("children", ANALYSING),
    "expressions": PrivateName("expressions", ANALYSING),
    "function": PrivateName("prettyName", ANALYSING),
    "deterministic": PrivateName("deterministic", ANALYSING),
    "contains": PrivateName("containsPattern", PLANNING),
    "tag": PrivateName("getTagValue", ANALYSING),
    "cast pattern": PrivateName("org.apache.spark.sql.catalyst.trees.TreePattern.CAST", ANALYSING),
    "written cast": PrivateName("org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST", ANALYSING),
    "functions": PrivateName("functionRegistry", ROW_ERRORS),
    "register": PrivateName("createOrReplaceTempFunction", ROW_ERRORS),
    "builder": PrivateName("org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase.build", ROW_ERRORS),
    "second": PrivateName("_2", ROW_ERRORS),
    "try": PrivateName("org.apache.spark.sql.catalyst.expressions.TryEval", ROW_ERRORS),
    "state": PrivateName("sessionState", PLANNING),
    "optimizer": PrivateName("optimizer", PLANNING),
    "execute": PrivateName("execute", PLANNING),
    "batches": PrivateName("batches", PLANNING),
    "needed rules": PrivateName("nonExcludableRules", PLANNING),
    "clock words": PrivateName("org.apache.spark.sql.catalyst.optimizer.SpecialDatetimeValues", PLANNING),
    "clock pattern": PrivateName("org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE", PLANNING),
    "dataset": PrivateName("org.apache.spark.sql.classic.Dataset.ofRows", PLANNING),
    "operator check": PrivateName(
        "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming", OPERATORS
    ),
    "output modes": PrivateName("org.apache.spark.sql.streaming.OutputMode", OPERATORS),
    "query": PrivateName("_jsq", PROGRESS),
    "context": PrivateName("_jsc", STORAGE),
    "file systems": PrivateName("hadoopConfiguration", STORAGE),
    "checkpoint files": PrivateName(
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager", CHECKPOINTS
    ),
}

JAVA_CLASS = re.compile(r"(?:[a-z]+\.)+[A-Z]\w*")
_warned: set[Use] = set()


def private(thing: Any, key: str) -> Any:
    """The member of an object, or the class or method below the JVM's packages, with the path of `NAMES`."""
    return reduce(getattr, names_of(NAMES[key].path), thing)


def names_of(path: str) -> list[str]:
    """The names to look up one after the other.

    The packages of a class belong to its name: asked for a package, Py4J searches all jars for a class of that name.
    """
    java_class = JAVA_CLASS.match(path)
    if java_class is None:
        return path.split(".")
    return [java_class[0], *path[java_class.end() :].split(".")[1:]]


def analysed_plan(frame: DataFrame) -> Any:
    """The plan of a frame with all names resolved."""
    return private(private(private(frame, "frame"), "execution")(), "analyzed")()


def items(sequence: Any) -> list[Any]:
    """The elements of a sequence of Scala."""
    return [sequence.apply(index) for index in range(sequence.size())]


def or_plainly(use: Use, action: Callable[[], Result], otherwise: Result) -> Result:
    """The result of an action that uses private names, or of the plain way if one of them has changed."""
    try:
        return action()
    except (AttributeError, TypeError, Py4JError) as error:
        warn(use, error)
        return otherwise


def warn(use: Use, error: Exception) -> None:
    if use not in _warned:
        _warned.add(use)
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        LOG.warning(
            "PySpark %s has changed a private name that is used to %s; %s (%s)",
            pyspark.__version__, use.purpose, use.fallback, reason,
        )  # fmt: skip


# PySpark asks Java for the classes of its functions by name at each use. To find a class by its short name, Java
# searches several packages in all jars of Spark, which takes longer than most of the calls.
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
    """Keeps the Java classes whose methods PySpark calls for every column, with the methods that were used."""

    def keep() -> None:
        view = private(session, "jvm")
        for name in CLASSES:
            if name not in vars(view):
                vars(view)[name] = KeptClass(getattr(view, name))

    or_plainly(LOOKUPS, keep, None)
