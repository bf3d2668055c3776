"""Short messages from Spark's errors."""

from __future__ import annotations

from odradek.pipelines.spark.failures import LONGEST, plain_text

WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/lib/pyspark.zip/pyspark/worker.py", line 1, in main
    process()
  File "/my/rules.py", line 7, in handleInputRows
    raise ValueError("no such pump")
ValueError: no such pump
\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
"""


def test_conditions_states_and_plans_are_left_out() -> None:
    said = "[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703;\n'Project ['x]"
    assert plain_text(said) == "A column `x` cannot be resolved."


def test_a_query_is_reported_by_its_cause() -> None:
    said = "[STREAM_FAILED] Query [id = 1] terminated with exception: java.io.IOException: disk full\n\tat a.B.c"
    assert plain_text(said) == "disk full"


def test_an_exception_of_the_user_is_reported_with_its_place() -> None:
    assert plain_text(WORKER) == 'ValueError: no such pump (File "/my/rules.py", line 7, in handleInputRows)'


def test_it_stays_short() -> None:
    assert len(plain_text("x" * 5000)) == LONGEST
