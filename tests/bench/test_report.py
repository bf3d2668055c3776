"""The rows, the document, and the file that keeps the figures."""

from pathlib import Path

from bench.report import render, write
from bench.results import KAFKA, ODRADEK, Experiment, Results
from bench.table import in_words, markdown, rows_of


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
    assert (cpu.title, cpu.ratio, cpu.verdict) == ("", "0.33", "short")


def test_single_run_has_no_extremes_and_a_missing_broker_a_dash() -> None:
    (row,) = rows_of(some_results().experiments[1])
    assert (row.odradek, row.kafka, row.ratio, row.verdict) == ("41.3", "–", "–", "met")


def test_words_count_the_targets_and_name_those_that_are_short() -> None:
    assert in_words(some_results()) == [
        "2 of 3 targets are met.",
        "Short: produce 100 B, broker CPU, s per GB: 0.33 × Kafka's, where the target is ≤ 0.25 ×.",
    ]
    assert in_words(some_results(with_kafka=False)) == ["1 of 1 targets are met."]


def test_markdown_table_escapes_its_own_mark() -> None:
    assert markdown(["a", "b"], [["x|y", "z"]]) == "| a | b |\n| --- | --- |\n| x\\|y | z |"


def test_document_says_what_was_measured_when_and_on_what() -> None:
    document = render(some_results(), preface="In our own words.\n")
    for part in (
        "In our own words.",
        "Measured on 2026-01-02. 2 of 3 targets are met.",
        "Medians of 3 runs of each broker in turns",
        "produce 100 B: 5,000,000 records",
        "| after 10 million 100 B records | resident memory, MB | 41.3 |",
        "- after 10 million 100 B records: measured once.",
        "- Cores: 2",
        "- Load generator: a generator",
    ):
        assert part in document
    assert "\n\n\n" not in document
    assert "not figures to quote" not in document


def test_document_of_a_reduced_run_says_so() -> None:
    results = some_results()
    results.scale = 0.02
    assert "This is 0.02 of the full size: not figures to quote." in render(results)


def test_results_survive_their_file(tmp_path: Path) -> None:
    results = some_results()
    results.save(tmp_path / "deep" / "results.json")
    again = Results.load(tmp_path / "deep" / "results.json")
    assert again == results
    write(again, tmp_path / "docs" / "benchmarks.md")
    assert (tmp_path / "docs" / "benchmarks.md").read_text().startswith("# Benchmarks\n")
