"""docs/benchmarks.md from a set of results: a template and the preface in bench/preface.md."""

from collections.abc import Sequence
from pathlib import Path

from bench.results import KAFKA, Experiment, Results
from bench.table import headings, markdown, rows_of, target_sentences
from bench.workloads import CLUSTERS, FOOTPRINTS, OTHERS, OWN_RATES, PIPELINES, SCALES, SECURITY, WORKLOADS

PREFACE = Path(__file__).parent / "preface.md"

TEMPLATE = """\
# Benchmarks

<!-- Written by `make bench`; edit bench/preface.md or bench/report.py instead. -->

Odradek and Apache Kafka under the same loads on [one machine](#the-machine).
[How it is measured](#how-it-is-measured) describes each workload.

Measured on {date}, in the order A B B A. {conclusion}

## Beside Apache Kafka

Medians of {rounds}, with the smallest and the largest figure in parentheses. *Ratio* is Odradek's median divided by
Apache Kafka's. GB and MB are decimal.

{workloads}

## Start, memory, connections, groups

{others}

## Recovery, partitions, compaction

{scales}

## Security

{security}

## Metrics and processes

{own_rates}

## Three brokers

{clusters}

## Pipelines on Spark

{pipelines}

{notes}

## The machine

{machine}

## How it is measured

{preface}

{sizes}

## How to reproduce

Run `make bench` on an otherwise idle machine. Options:

- `make bench ARGS="--quick"` takes a minute or two and shows only that everything works: its figures mean nothing.
- `make bench ARGS="--only produce-100b,latency"` runs the named workloads.
- `make bench ARGS="--profile"` also writes a flame graph of the broker for each workload.

## How to judge a change

`make bench ARGS="--against main"` measures the broker of this checkout, with uncommitted changes, against the broker of
another commit, which is checked out below `build/bench` for the duration of the run. The two versions run in turns on
one machine, with the same load generator and the same installed dependencies, in the order A B B A, with new processes
for each such pair of rounds. The result is a table, on the screen and in `build/bench/against.md`, with a row for each
metric: the medians before and after, the median of the ratios of all rounds, the spread of these ratios, and a verdict.

- *not slower* (*not more* for CPU time and memory): the ratio is worse by at most 3 % (`--tolerance`).
- *slower* (*more*): it is worse by more than that, and every ratio of the spread is worse. Such a workload is measured
  again in as many rounds, and at least until there are 8, and judged by all of them, because of 40 rows some are worse
  in a few rounds by chance.
- *within noise*: the median is worse by more than the tolerance, but the spread is larger than the difference. Measure
  again with more rounds: `make bench ARGS="--against main --only commits --rounds 12"`.

The exit code is 1 if a row is slower or takes more, 2 if a version could not be measured, else 0, also if rows are
*within noise*. Without `--only` the run takes up to 20 minutes, and longer if a verdict must be confirmed. It covers
every workload of the broker except latency beside other work (`--only calm`).
"""


def rounds_text(results: Results) -> str:
    runs = "one run" if results.rounds == 1 else f"{results.rounds} runs"
    return f"{runs} of each broker in turns" if KAFKA in results.brokers else runs


def sizes_text(results: Results) -> str:
    measured = {each.name for each in results.experiments}
    sizes = [
        f"{each.title}: {each.size_text}"
        for each in (workload.scaled(results.scale) for workload in WORKLOADS)
        if each.name in measured
    ]
    reduced = "" if results.scale == 1 else f" This is {results.scale:g} of the full size: do not quote these figures."
    return f"### Sizes\n\nEach run: {'; '.join(sizes)}.{reduced}" if sizes else ""


def table(results: Results, experiments: Sequence[Experiment]) -> str:
    if not experiments:
        return "Not measured in this run."
    return markdown(headings(results), (row.cells for each in experiments for row in rows_of(each)))


def render(results: Results, preface: str = "") -> str:
    workloads = [each for each in results.experiments if each.name not in OTHERS]
    others = [each for each in results.experiments if each.name in FOOTPRINTS]
    scales = [each for each in results.experiments if each.name in SCALES]
    security = [each for each in results.experiments if each.name in SECURITY]
    own_rates = [each for each in results.experiments if each.name in OWN_RATES]
    clusters = [each for each in results.experiments if each.name in CLUSTERS]
    pipelines = [each for each in results.experiments if each.name in PIPELINES]
    short, *rest = target_sentences(results)
    notes = [f"- {each.title}: {note}" for each in results.experiments for note in each.notes]
    text = TEMPLATE.format(
        preface=preface.strip(),
        sizes=sizes_text(results),
        date=results.date,
        conclusion="\n".join([short, *([""] if rest else []), *(f"- {each}" for each in rest)]),
        rounds=rounds_text(results),
        workloads=table(results, workloads),
        others=table(results, others),
        scales=table(results, scales),
        security=table(results, security),
        own_rates=table(results, own_rates),
        clusters=table(results, clusters),
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
