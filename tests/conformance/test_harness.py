"""The harness reads outcomes from JUnit's reports."""

from pathlib import Path

from tests.conformance.harness import read_outcomes

REPORT = """
<testsuite>
  <testcase name="passes()[1]"/>
  <testcase name="fails()[1]"><failure message="expected 1&#10;but was 2"/></testcase>
  <testcase name="breaks()[1]"><error>no message</error></testcase>
  <testcase name="isAborted()[1]"><skipped>needs a controller listener</skipped></testcase>
</testsuite>
"""


def test_only_a_test_without_failure_error_or_skip_has_passed(tmp_path: Path) -> None:
    (tmp_path / "TEST-one.xml").write_text(REPORT.strip())
    assert read_outcomes(tmp_path) == {
        "passes()[1]": "",
        "fails()[1]": "expected 1",
        "breaks()[1]": "no message",
        "isAborted()[1]": "needs a controller listener",
    }


def test_class_without_reports_has_no_outcomes(tmp_path: Path) -> None:
    assert read_outcomes(tmp_path) == {}
