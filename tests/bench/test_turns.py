"""The order of brokers in rounds."""

from pathlib import Path

from bench.brokers import BrokerKind
from bench.odradek_broker import Odradek
from bench.results import AFTER, BEFORE, Experiment, Run
from bench.turns import in_turns, turn_order


def test_order_alternates_so_that_drift_favours_neither() -> None:
    assert [turn_order("AB", number) for number in (1, 2, 3)] == [["A", "B"], ["B", "A"], ["A", "B"]]


def test_each_run_has_a_directory_that_is_removed_and_its_round_is_reported(tmp_path: Path) -> None:
    kinds = [Odradek(key=BEFORE, given_title="old"), Odradek(key=AFTER, given_title="new")]
    reported: list[tuple[str, str]] = []

    def measure(_kind: BrokerKind, directory: Path, _experiment: Experiment) -> Run:
        directory.mkdir()
        return {"start_s": float(len(reported))}

    experiment = in_turns(
        "start", range(3, 5), kinds, tmp_path, measure, lambda _title, kind, which, _run: reported.append((kind, which))
    )
    assert reported == [("old", "round 3"), ("new", "round 3"), ("new", "round 4"), ("old", "round 4")]
    assert experiment.runs == {
        BEFORE: [{"start_s": 0.0}, {"start_s": 3.0}],
        AFTER: [{"start_s": 1.0}, {"start_s": 2.0}],
    }
    assert list(tmp_path.iterdir()) == []
