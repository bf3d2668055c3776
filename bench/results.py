"""Every run of every experiment, with machine and date, and the file that holds them."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.summary import Spread, spread

Run = dict[str, float]

ODRADEK = "odradek"
KAFKA = "kafka"
BEFORE = "before"
AFTER = "after"


@dataclass(slots=True)
class Experiment:
    """One workload or other measurement: the runs of each broker, and notes for the reader."""

    name: str
    title: str
    metrics: list[str]
    runs: dict[str, list[Run]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, broker: str, run: Run) -> None:
        self.runs.setdefault(broker, []).append(run)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def extend(self, other: "Experiment") -> None:
        """Add the runs and notes of further rounds."""
        for broker, runs in other.runs.items():
            self.runs.setdefault(broker, []).extend(runs)
        for text in other.notes:
            self.note(text)

    def figures(self, broker: str, metric: str) -> Spread | None:
        values = [run[metric] for run in self.runs.get(broker, []) if metric in run]
        return spread(values) if values else None


@dataclass(slots=True)
class Results:
    date: str
    rounds: int
    scale: float
    generator: str
    machine: dict[str, str]
    brokers: dict[str, str]
    """The title of each broker measured, by its key."""
    experiments: list[Experiment] = field(default_factory=list)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Results":
        given = json.loads(path.read_text())
        experiments = [Experiment(**each) for each in given.pop("experiments")]
        return cls(**given, experiments=experiments)
