"""A comparison as a Markdown document, and as sentences for the screen. Pure."""

from collections.abc import Sequence

from bench.comparison import Row, Verdict, compare
from bench.results import AFTER, BEFORE, Results
from bench.table import markdown

TEMPLATE = """\
# {after} against {before}

Measured on {date}. {conclusion}

*Before* and *after* are medians of all rounds, in which the two versions ran one after the other. *Ratio* is the median
of the ratios after ÷ before of each round, *spread* the range of these ratios (of 12 rounds and more without the
extremes). A row is worse (slower, more, fewer) if its ratio is worse by more than {tolerance:g} % and its whole
spread is worse; it is within noise if a part of the spread is not.

{table}

{notes}
"""


def headings() -> tuple[str, ...]:
    return ("workload", "measure", "before", "after", "ratio", "spread", "verdict")


def rows_of(results: Results, tolerance: float) -> list[list[Row]]:
    """The rows of each experiment."""
    return [compare(experiment, tolerance) for experiment in results.experiments]


def worse_rows(results: Results, tolerance: float) -> list[str]:
    """Each row that is worse: the title of its experiment, the metric, and the ratio."""
    return [
        f"{experiment.title}, {row.metric.label}: {row.verdict_text} (ratio {row.cells[4]}, spread {row.cells[5]})"
        for experiment, rows in zip(results.experiments, rows_of(results, tolerance), strict=True)
        for row in rows
        if row.verdict is Verdict.WORSE
    ]


def conclusion(results: Results, tolerance: float) -> str:
    rows = [row for rows in rows_of(results, tolerance) for row in rows]
    worse = sum(row.verdict is Verdict.WORSE for row in rows)
    noisy = sum(row.verdict is Verdict.WITHIN_NOISE for row in rows)
    return f"{worse} of {len(rows)} rows are worse by more than {tolerance * 100:g} %, {noisy} are within noise."


def render(results: Results, tolerance: float, notes: Sequence[str] = ()) -> str:
    facts = {**results.machine, "Load generator": results.generator}
    lines = [
        *(f"- Worse: {text}" for text in worse_rows(results, tolerance)),
        *(f"- {note}" for note in notes),
        *(f"- {each.title}: {note}" for each in results.experiments for note in each.notes),
        *(f"- {name}: {value}" for name, value in facts.items()),
    ]
    cells = (row.cells for rows in rows_of(results, tolerance) for row in rows)
    return TEMPLATE.format(
        before=results.brokers[BEFORE],
        after=results.brokers[AFTER],
        date=results.date,
        conclusion=conclusion(results, tolerance),
        tolerance=tolerance * 100,
        table=markdown(headings(), cells),
        notes="\n".join(lines),
    )
