"""The options, when docs/benchmarks.md is written by default, and the exit codes."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from bench import command_line
from bench.command_line import is_full, main, parser, read
from bench.results import AFTER, BEFORE, ODRADEK, Experiment, Results
from bench.versions import Version
from bench.workloads import BROKER_NAMES, COMPARED_SIZES, PIPELINES


@pytest.mark.parametrize(
    ("arguments", "full"),
    [
        ([], True),
        (["--rounds", "7"], True),
        (["--profile"], True),
        (["--rounds", "3"], False),
        (["--quick"], False),
        (["--only", "latency"], False),
        (["--alone"], False),
        (["--scale", "0.5"], False),
        (["--broker-command", "x"], False),
    ],
)
def test_only_a_full_run_at_full_size_is_written_by_default(arguments: list[str], full: bool) -> None:
    assert is_full(parser().parse_args(arguments)) is full


def test_only_takes_names_and_refuses_unknown_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser().parse_args(["--only", "produce-100b, latency"]).only == ["produce-100b", "latency"]
    with pytest.raises(SystemExit):
        parser().parse_args(["--only", "produce-100b,speed"])
    assert "no such workload: speed" in capsys.readouterr().err


def test_document_can_be_written_from_the_results_of_an_earlier_run(tmp_path: Path) -> None:
    experiment = Experiment("start", "start to first acknowledged record", ["start_s"])
    experiment.add(ODRADEK, {"start_s": 0.3})
    results = Results("2026-01-02", 1, 1.0, "a generator", {}, {ODRADEK: "Odradek"}, [experiment])
    results.save(tmp_path / "results.json")
    document = tmp_path / "benchmarks.md"
    assert main(["--from-results", str(tmp_path / "results.json"), "--document", str(document)]) == 0
    assert not document.exists()
    assert main(["--from-results", str(tmp_path / "results.json"), "--document", str(document), "--write"]) == 0
    assert "| start to first acknowledged record | time, s | 0.30 |" in document.read_text()


def test_against_takes_a_commit_rounds_and_a_tolerance_in_percent() -> None:
    given = read(["--against", "main~3", "--rounds", "8", "--only", "commits,start", "--tolerance", "5%"])
    assert (given.against, given.rounds, given.only, given.tolerance) == ("main~3", 8, ["commits", "start"], 0.05)
    assert read(["--against", "main"]).tolerance == 0.03


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alone"], "--alone cannot be combined with --against"),
        (["--write"], "--write cannot be combined with --against"),
        (["--profile"], "--profile cannot be combined with --against"),
        (["--broker-command", "x"], "--broker-command cannot be combined with --against"),
        (["--from-results", "x"], "--from-results cannot be combined with --against"),
        (["--only", "start,transform"], "transform measures pipelines"),
        (["--rounds", "0"], "0 is less than 1"),
        (["--tolerance", "100"], "100 is not between 0 and 100"),
    ],
)
def test_options_without_a_meaning_for_against_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read(["--against", "main", *arguments])
    assert message in capsys.readouterr().err


def test_every_workload_of_the_broker_can_be_compared_in_pairs_of_rounds() -> None:
    assert set(COMPARED_SIZES) == set(BROKER_NAMES)
    assert not set(BROKER_NAMES) & set(PIPELINES)
    assert all(size.rounds % 2 == 0 for size in COMPARED_SIZES.values())


@pytest.mark.parametrize(("after_s", "code"), [(1.0, 0), (1.02, 0), (1.5, 1)])
def test_exit_code_says_whether_a_version_is_slower(
    after_s: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Measured:
        def __init__(self, **_options: object) -> None:
            pass

        def run(self) -> Results:
            experiment = Experiment("start", "start to first acknowledged record", ["start_s"])
            for key, figure in ((BEFORE, 1.0), (AFTER, after_s)):
                experiment.runs[key] = [{"start_s": figure}] * 4
            return Results("2026-01-02", 4, 1.0, "a generator", {}, {BEFORE: "old", AFTER: "new"}, [experiment])

    monkeypatch.setattr(command_line, "Comparison", Measured)
    monkeypatch.setattr(command_line, "checked_out", lambda *_: nullcontext(Version("old", tmp_path, "uvloop==1")))
    monkeypatch.setattr(command_line, "this_checkout", lambda: Version("new", tmp_path, "uvloop==2"))
    assert main(["--against", "HEAD", "--generator", "librdkafka", "--output", str(tmp_path)]) == code
    assert ("- Worse: start" in (tmp_path / "against.md").read_text()) is bool(code)
    printed = capsys.readouterr().out
    assert f"{code} of 1 rows are worse" in printed
    assert "Dependencies differ, and both run with those installed here: uvloop 1 → 2." in printed


def test_unknown_commit_is_an_error_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--against", "no-such-branch", "--output", str(tmp_path)]) == 2
    assert "no such commit: no-such-branch" in capsys.readouterr().out
