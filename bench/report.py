"""docs/benchmarks.md from a set of results: one template, plain Markdown, and a preface that a person wrote."""

from collections.abc import Sequence
from pathlib import Path

from bench.results import KAFKA, Experiment, Results
from bench.table import headings, in_words, markdown, rows_of
from bench.workloads import FOOTPRINTS, OTHERS, PIPELINES, SCALES, WORKLOADS

PREFACE = Path(__file__).parent / "preface.md"

TEMPLATE = """\
# Benchmarks

<!-- Written by `make bench`; edit bench/preface.md or bench/report.py instead. -->

{preface}

{sizes}

Measured on {date}. {words}

## Beside Apache Kafka

Medians of {rounds}, in brackets the smallest and the largest. *Ratio* is Odradek's median by Apache Kafka's.
GB and MB are decimal.

{workloads}

## Start, memory, connections, groups

{others}

## The life of a log, at scale

{scales}

## Pipelines on Spark

{pipelines}

{notes}

## The machine

{machine}

## How to reproduce

`make bench` on a quiet machine. Other ways to run it:

- `make bench ARGS="--quick"` takes a minute or two, and its figures are not to be trusted.
- `make bench ARGS="--only produce-100b,latency"` runs some of it.
- `make bench ARGS="--profile"` also writes a flame graph of the broker for each workload.
"""


def rounds_in_words(results: Results) -> str:
    runs = "one run" if results.rounds == 1 else f"{results.rounds} runs"
    return f"{runs} of each broker in turns" if KAFKA in results.brokers else runs


def sizes_in_words(results: Results) -> str:
    measured = {each.name for each in results.experiments}
    sizes = [
        f"{each.title}: {each.size_in_words}"
        for each in (workload.scaled(results.scale) for workload in WORKLOADS)
        if each.name in measured
    ]
    reduced = "" if results.scale == 1 else f" This is {results.scale:g} of the full size: not figures to quote."
    return f"Each run: {'; '.join(sizes)}.{reduced}" if sizes else ""


def table(results: Results, experiments: Sequence[Experiment]) -> str:
    if not experiments:
        return "Not measured in this run."
    return markdown(headings(results), (row.cells for each in experiments for row in rows_of(each)))


def render(results: Results, preface: str = "") -> str:
    workloads = [each for each in results.experiments if each.name not in OTHERS]
    others = [each for each in results.experiments if each.name in FOOTPRINTS]
    scales = [each for each in results.experiments if each.name in SCALES]
    pipelines = [each for each in results.experiments if each.name in PIPELINES]
    short, *rest = in_words(results)
    notes = [f"- {each.title}: {note}" for each in results.experiments for note in each.notes]
    text = TEMPLATE.format(
        preface=preface.strip(),
        sizes=sizes_in_words(results),
        date=results.date,
        words="\n".join([short, *([""] if rest else []), *(f"- {each}" for each in rest)]),
        rounds=rounds_in_words(results),
        workloads=table(results, workloads),
        others=table(results, others),
        scales=table(results, scales),
        pipelines=table(results, pipelines),
        notes="\n".join(notes),
        machine="\n".join(
            f"- {name}: {value}" for name, value in {**results.machine, "Load generator": results.generator}.items()
        ),
    )
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def write(results: Results, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(results, PREFACE.read_text() if PREFACE.exists() else ""))
