"""The rows, the document, and the results file."""

from pathlib import Path

from bench.report import render, write
from bench.results import KAFKA, ODRADEK, Experiment, Results
from bench.table import markdown, rows_of, target_sentences


def some_results(*, with_kafka: bool = True) -> Results:
    produce = Experiment("produce-100b", "produce 100 B", ["records_per_s", "broker_cpu_s_per_gb"])
    for rate, cpu in ((1_300_000, 1.0), (1_500_000, 0.9), (1_400_000, 1.4)):
        produce.add(ODRADEK, {"records_per_s": rate, "broker_cpu_s_per_gb": cpu})
        if with_kafka:
            produce.add(KAFKA, {"records_per_s": rate - 400_000, "broker_cpu_s_per_gb": cpu * 3})
    memory = Experiment("memory", "after 10 million 100 B records", ["memory_mb"], notes=["measured once."])
    memory.add(ODRADEK, {"memory_mb": 41.26})
    return Results(
        date="2026-01-02",
        rounds=3,
        scale=1.0,
        generator="a generator",
        machine={"Cores": "2"},
        brokers={ODRADEK: "Odradek 1", KAFKA: "Apache Kafka 4"} if with_kafka else {ODRADEK: "Odradek 1"},
        experiments=[produce, memory],
    )


def test_row_holds_median_extremes_ratio_and_verdict() -> None:
    rate, cpu = rows_of(some_results().experiments[0])
    assert rate.cells == (
        "produce 100 B",
        "records/s",
        "1,400,000 (1,300,000–1,500,000)",
        "1,000,000 (900,000–1,100,000)",
        "1.40",
        "≥ 1.20 ×",
        "met",
    )
    assert (cpu.title, cpu.ratio, cpu.verdict) == ("", "0.33", "missed")


def test_single_run_has_no_extremes_and_a_missing_broker_is_a_dash() -> None:
    (row,) = rows_of(some_results().experiments[1])
    assert (row.odradek, row.kafka, row.ratio, row.verdict) == ("41.3", "–", "–", "met")


def test_targets_are_counted_and_missed_ones_named() -> None:
    assert target_sentences(some_results()) == [
        "2 of 3 targets are met.",
        "Missed: produce 100 B, broker CPU, s per GB: 0.33 × Kafka's, the target is ≤ 0.25 ×.",
    ]
    assert target_sentences(some_results(with_kafka=False)) == ["1 of 1 targets are met."]


def test_markdown_table_escapes_the_column_separator() -> None:
    assert markdown(["a", "b"], [["x|y", "z"]]) == "| a | b |\n| --- | --- |\n| x\\|y | z |"


def test_document_holds_preface_date_sizes_figures_and_machine() -> None:
    document = render(some_results(), preface="A preface.\n")
    for part in (
        "A preface.",
        "Measured on 2026-01-02, in the order A B B A. 2 of 3 targets are met.",
        "Medians of 3 runs of each broker in turns",
        "produce 100 B: 5,000,000 records",
        "| after 10 million 100 B records | resident memory, MB | 41.3 |",
        "- after 10 million 100 B records: measured once.",
        "- Cores: 2",
        "- Load generator: a generator",
    ):
        assert part in document
    assert "\n\n\n" not in document
    assert "do not quote these figures" not in document


def test_document_of_a_reduced_run_says_so() -> None:
    results = some_results()
    results.scale = 0.02
    assert "This is 0.02 of the full size: do not quote these figures." in render(results)


def test_results_are_equal_after_saving_and_loading(tmp_path: Path) -> None:
    results = some_results()
    results.save(tmp_path / "deep" / "results.json")
    again = Results.load(tmp_path / "deep" / "results.json")
    assert again == results
    write(again, tmp_path / "docs" / "benchmarks.md")
    assert (tmp_path / "docs" / "benchmarks.md").read_text().startswith("# Benchmarks\n")
