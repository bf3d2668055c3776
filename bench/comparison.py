"""Two versions side by side: ratios of the runs of each round, their spread, and a verdict for each metric. Pure.

A ratio is the figure after the change divided by the figure before it, both of the same round, so that a disturbance
of the machine that lasts longer than a round affects both.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bench.metrics import METRICS, Metric
from bench.results import AFTER, BEFORE, Experiment

TOLERANCE = 0.03
CONFIDENCE = 0.99
FEWEST_CONFIRMED_ROUNDS = 8
"""A version that is no slower is slower in all of 8 rounds with a probability of 0.4 %, in all of 4 with 6 %."""
DERIVED = frozenset({"mb_per_s", "kb_per_connection", "compacting_times", "cold_times"})
"""Metrics that follow from others of the same experiment: they would repeat a verdict."""


class Verdict(Enum):
    NOT_WORSE = "not worse"
    WORSE = "worse"
    WITHIN_NOISE = "within noise"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Ratios:
    """The median of the ratios of all rounds, and their range without `ignored_extremes`."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    metric: Metric
    before: float | None
    after: float | None
    ratios: Ratios | None
    verdict: Verdict

    @property
    def verdict_text(self) -> str:
        match self.verdict:
            case Verdict.WORSE:
                return self.metric.worse
            case Verdict.NOT_WORSE:
                return f"not {self.metric.worse}"
        return str(self.verdict.value)

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.title,
            self.metric.label,
            _written(self.metric, self.before),
            _written(self.metric, self.after),
            "–" if self.ratios is None else f"{self.ratios.median:.3f}",
            "–" if self.ratios is None else f"{self.ratios.low:.3f}–{self.ratios.high:.3f}",
            self.verdict_text,
        )


def _written(metric: Metric, value: float | None) -> str:
    return "–" if value is None else metric.write(value)


def pairs(experiment: Experiment, metric: str) -> list[tuple[float, float]]:
    """The figures before and after of each round that has both."""
    rounds = zip(experiment.runs.get(BEFORE, []), experiment.runs.get(AFTER, []), strict=False)
    return [(before[metric], after[metric]) for before, after in rounds if metric in before and metric in after]


def ratio_of(before: float, after: float) -> float:
    """1 where both are nothing, infinite where only `before` is. Differences of memory can be negative: nothing."""
    if before <= 0:
        return 1.0 if after <= 0 else math.inf
    return max(0.0, after) / before


def ratios_of(figures: Sequence[tuple[float, float]]) -> Ratios | None:
    if not figures:
        return None
    ratios = sorted(ratio_of(before, after) for before, after in figures)
    ignored = ignored_extremes(len(ratios))
    return Ratios(statistics.median(ratios), ratios[ignored], ratios[-1 - ignored])


def ignored_extremes(rounds: int) -> int:
    """How many of the smallest and of the largest ratios the spread leaves out, so that one disturbed round does
    not decide. The rest holds the true median with a probability of 99 %; of fewer than 12 rounds, none is left out."""
    ignored = outside = 0
    while True:
        outside += math.comb(rounds, ignored)
        following = outside + math.comb(rounds, ignored + 1)
        if 2 * following / 2**rounds > 1 - CONFIDENCE:
            return ignored
        ignored += 1


def judge(ratios: Ratios | None, tolerance: float, *, is_higher_better: bool) -> Verdict:
    """Worse: the median is worse by more than the tolerance, and the whole spread is worse. A spread with ratios that
    are not worse is larger than the difference, which may then be noise."""
    if ratios is None:
        return Verdict.NOT_MEASURED
    median, best = ratios.median, ratios.low
    if is_higher_better:
        median, best = _inverse(ratios.median), _inverse(ratios.high)
    if median <= 1 + tolerance:
        return Verdict.NOT_WORSE
    return Verdict.WORSE if best > 1 else Verdict.WITHIN_NOISE


def _inverse(ratio: float) -> float:
    return math.inf if ratio == 0 else 1 / ratio


def confirming_rounds(experiment: Experiment, tolerance: float) -> range:
    """The further rounds that must confirm a verdict of worse: as many again as were measured, or more to reach
    FEWEST_CONFIRMED_ROUNDS. Of 40 rows, some are worse by chance in each of a few rounds."""
    if not any(row.verdict is Verdict.WORSE for row in compare(experiment, tolerance)):
        return range(0)
    measured = len(experiment.runs[AFTER])
    return range(measured + 1, max(2 * measured, FEWEST_CONFIRMED_ROUNDS) + 1)


def compare(experiment: Experiment, tolerance: float = TOLERANCE) -> list[Row]:
    rows: list[Row] = []
    for key in experiment.metrics:
        if key in DERIVED:
            continue
        metric = METRICS[key]
        figures = pairs(experiment, key)
        ratios = ratios_of(figures)
        rows.append(
            Row(
                title="" if rows else experiment.title,
                metric=metric,
                before=statistics.median(before for before, _ in figures) if figures else None,
                after=statistics.median(after for _, after in figures) if figures else None,
                ratios=ratios,
                verdict=judge(ratios, tolerance, is_higher_better=metric.is_higher_better),
            )
        )
    return rows
