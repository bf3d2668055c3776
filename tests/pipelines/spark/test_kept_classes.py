"""Java classes that PySpark uses for every column are looked up once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import JavaMember
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.sessions.private_names import CLASSES, NAMES, KeptClass, keep_classes, names_of, private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Asked:
    """A Java class that counts the questions."""

    def __init__(self) -> None:
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        self.count += 1
        client = SimpleNamespace(converters=None, gateway_property=SimpleNamespace(pool=None))
        return JavaMember(name, None, "z:it", client) if name == "method" else 7


def test_a_method_is_looked_up_once_and_a_value_each_time() -> None:
    asked = Asked()
    kept = KeptClass(asked)
    assert kept.method is kept.method
    assert asked.count == 1
    assert (kept.value, kept.value) == (7, 7)
    assert asked.count == 3


@pytest.mark.spark
def test_a_session_keeps_the_classes_of_pyspark(spark: SparkSession) -> None:
    view = private(spark, "jvm")
    kept = {name: vars(view)[name] for name in CLASSES}
    assert all(isinstance(each, KeptClass) for each in kept.values())
    keep_classes(spark)
    assert {name: vars(view)[name] for name in CLASSES} == kept
    (row,) = spark.range(1).select((F.lit(2) + F.col("id")).alias("two"), F.upper(F.lit("a")).alias("a")).collect()
    assert (row.two, row.a) == (2, "A")
    assert "upper" in vars(kept["org.apache.spark.sql.functions"])


def test_the_packages_of_a_class_belong_to_its_name() -> None:
    assert names_of("a.b.Klass.member") == ["a.b.Klass", "member"]
    assert names_of("a.b.Klass") == ["a.b.Klass"]
    assert names_of("_jdf") == ["_jdf"]
    assert all(len(names_of(name.path)) <= 2 for name in NAMES.values())
