"""The order of experiments and rounds when two versions are compared."""

from pathlib import Path

import pytest
from rich.console import Console

from bench.against import Comparison
from bench.comparison import Verdict, compare
from bench.generator import Generator
from bench.odradek_broker import Odradek
from bench.results import AFTER, BEFORE, Experiment, Results
from bench.screen import Screen

TITLES = {BEFORE: "main (abc)", AFTER: "this checkout"}


def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    rounds: int | None,
    *,
    is_go: bool = True,
    slow: str = "",
) -> tuple[list[tuple[str, list[int]]], Results, list[int]]:
    """Which rounds of which experiment were measured, in order; the results; and the number of runs at each save."""
    measured: list[tuple[str, list[int]]] = []
    saved: list[int] = []

    def measure(_comparison: Comparison, name: str, numbers: range) -> Experiment:
        measured.append((name, list(numbers)))
        experiment = Experiment(name, name, ["start_s"])
        for number in numbers:
            experiment.add(BEFORE, {"start_s": number})
            experiment.add(AFTER, {"start_s": 2 * number if name == slow and number <= 2 else number})
        experiment.note("the same note.")
        return experiment

    monkeypatch.setattr(Comparison, "_measure", measure)
    results = Comparison(
        kinds=[Odradek(key=BEFORE), Odradek(key=AFTER)],
        titles=TITLES,
        generator=Generator(("load",), "a generator", is_go=is_go),
        directory=tmp_path,
        screen=Screen(Console(quiet=True)),
        names=names,
        rounds=rounds,
        scale=1.0,
        tolerance=0.03,
        keep=lambda results: saved.append(sum(len(each.runs[AFTER]) for each in results.experiments)),
    ).run()
    return measured, results, saved


def test_every_experiment_has_its_first_pair_of_rounds_before_any_has_its_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, results, saved = run(tmp_path, monkeypatch, ["start", "latency"], 3)
    assert measured == [("start", [1, 2]), ("latency", [1, 2]), ("start", [3]), ("latency", [3])]
    assert [each.runs[BEFORE] for each in results.experiments] == [[{"start_s": n} for n in (1, 2, 3)]] * 2
    assert [each.notes for each in results.experiments] == [["the same note."]] * 2
    assert saved == [2, 4, 5, 6]
    assert results.brokers == TITLES


def test_experiments_that_take_long_have_fewer_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, results, _ = run(tmp_path, monkeypatch, ["start", "recovery"], None)
    assert measured == [
        ("start", [1, 2]), ("recovery", [1, 2]), ("start", [3, 4]), ("recovery", [3, 4]), ("start", [5, 6]),
    ]  # fmt: skip
    assert results.rounds == 6


def test_workloads_that_need_go_are_left_out_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, _, _ = run(tmp_path, monkeypatch, ["commits", "start"], 2, is_go=False)
    assert measured == [("start", [1, 2])]


def test_experiment_that_is_worse_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, results, _ = run(tmp_path, monkeypatch, ["start", "latency"], 2, slow="start")
    assert measured == [("start", [1, 2]), ("latency", [1, 2]), ("start", [3, 4]), ("start", [5, 6]), ("start", [7, 8])]
    start = compare(results.experiments[0])
    assert [row.verdict for row in start] == [Verdict.NOT_WORSE]
