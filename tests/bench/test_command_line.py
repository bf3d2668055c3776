"""What can be asked for, and when docs/benchmarks.md is written without being asked."""

from pathlib import Path

import pytest

from bench.command_line import is_full, main, parser
from bench.results import ODRADEK, Experiment, Results


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
def test_only_everything_at_full_size_is_written_by_itself(arguments: list[str], full: bool) -> None:
    assert is_full(parser().parse_args(arguments)) is full


def test_only_takes_names_and_refuses_unknown_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser().parse_args(["--only", "produce-100b, latency"]).only == ["produce-100b", "latency"]
    with pytest.raises(SystemExit):
        parser().parse_args(["--only", "produce-100b,speed"])
    assert "no such workload: speed" in capsys.readouterr().err


def test_document_can_be_written_anew_from_kept_results(tmp_path: Path) -> None:
    experiment = Experiment("start", "start to first acknowledged record", ["start_s"])
    experiment.add(ODRADEK, {"start_s": 0.3})
    results = Results("2026-01-02", 1, 1.0, "a generator", {}, {ODRADEK: "Odradek"}, [experiment])
    results.save(tmp_path / "results.json")
    document = tmp_path / "benchmarks.md"
    assert main(["--from-results", str(tmp_path / "results.json"), "--document", str(document)]) == 0
    assert not document.exists()
    assert main(["--from-results", str(tmp_path / "results.json"), "--document", str(document), "--write"]) == 0
    assert "| start to first acknowledged record | time, s | 0.30 |" in document.read_text()
