"""The rows of the table on the screen and in docs/benchmarks.md: one per metric of each experiment. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from bench.metrics import METRICS
from bench.results import KAFKA, ODRADEK, Experiment, Results
from bench.summary import ratio
from bench.targets import TARGETS, target_of

MET = "met"
MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    metric: str
    odradek: str
    kafka: str
    ratio: str
    target: str
    verdict: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.title, self.metric, self.odradek, self.kafka, self.ratio, self.target, self.verdict)


def headings(results: Results) -> tuple[str, ...]:
    return (
        "workload",
        "measure",
        results.brokers.get(ODRADEK, "Odradek"),
        results.brokers.get(KAFKA, "Apache Kafka"),
        "ratio",
        "target",
        "",
    )


def rows_of(experiment: Experiment) -> list[Row]:
    rows = []
    for position, key in enumerate(experiment.metrics):
        metric = METRICS[key]
        ours, theirs = experiment.figures(ODRADEK, key), experiment.figures(KAFKA, key)
        kafka_ratio = ratio(ours, theirs)
        target = target_of(experiment.name, key)
        met = None if target is None else target.is_met(experiment)
        rows.append(
            Row(
                title=experiment.title if position == 0 else "",
                metric=metric.label,
                odradek=metric.write_spread(ours),
                kafka=metric.write_spread(theirs),
                ratio="–" if kafka_ratio is None else f"{kafka_ratio:.2f}",
                target="" if target is None else target.text,
                verdict="" if met is None else (MET if met else MISSED),
            )
        )
    return rows


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def target_sentences(results: Results) -> list[str]:
    """The number of targets that are met, then each missed target with the figure that was reached."""
    experiments = {experiment.name: experiment for experiment in results.experiments}
    judged = []
    for target in TARGETS:
        if target.experiment in experiments:
            experiment = experiments[target.experiment]
            met = target.is_met(experiment)
            if met is not None:
                judged.append((target, experiment, met))
    sentences = [f"{sum(met for _, _, met in judged)} of {len(judged)} targets are met."]
    for target, experiment, met in judged:
        if not met:
            figure = target.reached(experiment) or 0.0
            metric = METRICS[target.metric]
            reached = f"{figure:.2f} × Kafka's" if target.relative else f"{metric.write(figure)} {metric.unit}"
            sentences.append(f"Missed: {experiment.title}, {metric.label}: {reached}, the target is {target.text}.")
    return sentences
