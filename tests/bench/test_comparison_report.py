"""The document of a comparison."""

from bench.comparison_report import conclusion, render, worse_rows
from bench.results import AFTER, BEFORE, Experiment, Results


def some_results() -> Results:
    produce = Experiment("produce-100b", "produce 100 B", ["records_per_s", "broker_cpu_s_per_gb"])
    start = Experiment("start", "start to first acknowledged record", ["start_s"], notes=["measured here."])
    for _ in range(4):
        produce.add(BEFORE, {"records_per_s": 1_000_000, "broker_cpu_s_per_gb": 1.0})
        produce.add(AFTER, {"records_per_s": 1_000_000, "broker_cpu_s_per_gb": 1.25})
        start.add(BEFORE, {"start_s": 1.0})
    for seconds in (0.9, 1.3, 1.3, 1.3):
        start.add(AFTER, {"start_s": seconds})
    return Results(
        date="2026-01-02",
        rounds=4,
        scale=1.0,
        generator="a generator",
        machine={"Cores": "2"},
        brokers={BEFORE: "main (abc)", AFTER: "this checkout"},
        experiments=[produce, start],
    )


def test_worse_rows_are_named_with_their_experiment() -> None:
    assert worse_rows(some_results(), 0.03) == [
        "produce 100 B, broker CPU, s per GB: more (ratio 1.250, spread 1.250–1.250)"
    ]
    assert worse_rows(some_results(), 0.3) == []


def test_conclusion_counts_what_is_worse_and_what_is_noise() -> None:
    assert conclusion(some_results(), 0.03) == "1 of 3 rows are worse by more than 3 %, 1 are within noise."


def test_document_names_the_versions_the_verdicts_and_the_machine() -> None:
    document = render(some_results(), 0.03, ["Dependencies differ."])
    for part in (
        "# this checkout against main (abc)",
        "Measured on 2026-01-02. 1 of 3 rows",
        "| produce 100 B | records/s | 1,000,000 | 1,000,000 | 1.000 | 1.000–1.000 | not slower |",
        "|  | broker CPU, s per GB | 1.00 | 1.25 | 1.250 | 1.250–1.250 | more |",
        "| start to first acknowledged record | time, s | 1.00 | 1.30 | 1.300 | 0.900–1.300 | within noise |",
        "- Worse: produce 100 B, broker CPU",
        "- Dependencies differ.",
        "- start to first acknowledged record: measured here.",
        "- Cores: 2",
        "- Load generator: a generator",
    ):
        assert part in document
