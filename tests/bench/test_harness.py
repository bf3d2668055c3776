"""The whole harness at a tiny size, on real brokers: every experiment gives its figures, and no file is left behind."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.command_line import main
from bench.results import AFTER, BEFORE, KAFKA, ODRADEK, Results
from bench.workloads import CLUSTERS, NAMES, NEED_GO, PIPELINES, SCALES, TRANSACTIONS
from tests.jvm import jars

MAY_BE_ZERO = {
    "broker_cpu_s_per_gb", "broker_cpu_percent", "broker_cpu_us_per_commit", "broker_cpu_us_per_transaction",
    "connections_mb_more", "kb_per_connection", "expulsions", "cost_percent", "cpu_cost_percent",
}  # fmt: skip
QUICK = [name for name in NAMES if name not in {*SCALES, *CLUSTERS, *PIPELINES}]
HAS_GO = shutil.which("go") is not None
# Every experiment runs with one generator, and every mode with both; "calm" covers librdkafka's latency mode.
BY_GO = {*NEED_GO, "produce-100b", "consume-1kb", "latency", "start", "connections", "compaction"}
BY_LIBRDKAFKA = {"produce-1kb", "produce-100b-16kb", "consume-100b", "start", "memory", "connections"}
TINY = ["--rounds", "1", "--scale", "0.0005", "--write"]


def bench(tmp_path: Path, *arguments: str) -> Results:
    data = tmp_path / "data"
    data.mkdir()
    places = ["--directory", str(data), "--output", str(tmp_path), "--document", str(tmp_path / "benchmarks.md")]
    assert main([*TINY, *places, *arguments]) == 0
    assert list(data.iterdir()) == []
    return Results.load(tmp_path / "results.json")


def check(results: Results, broker: str) -> None:
    for experiment in results.experiments:
        for metric in experiment.metrics:
            figures = experiment.figures(broker, metric)
            assert figures is not None, (experiment.name, metric)
            if metric not in MAY_BE_ZERO:
                assert figures.median > 0, (experiment.name, metric)


def test_every_experiment_is_covered_here() -> None:
    assert {*BY_GO, *BY_LIBRDKAFKA, *SCALES, *CLUSTERS, *PIPELINES} == set(NAMES)


@pytest.mark.more
def test_librdkafka_measures_what_it_can(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for name in QUICK if name in BY_LIBRDKAFKA | NEED_GO or not HAS_GO]
    results = bench(tmp_path, "--alone", "--generator", "librdkafka", "--only", ",".join(names))
    measured = [experiment.name for experiment in results.experiments]
    assert measured == [name for name in names if name not in NEED_GO]
    assert (
        f"need the Go load generator: {', '.join(name for name in NAMES if name in NEED_GO)}" in capsys.readouterr().out
    )
    check(results, ODRADEK)
    assert "do not quote these figures" in (tmp_path / "benchmarks.md").read_text()


@pytest.mark.soak
@pytest.mark.go
@pytest.mark.skipif(not HAS_GO, reason="needs a Go toolchain on the PATH")
def test_franz_go_measures_what_librdkafka_cannot(tmp_path: Path) -> None:
    names = [name for name in NAMES if name in BY_GO]
    results = bench(tmp_path, "--alone", "--generator", "go", "--only", ",".join(names))
    assert [experiment.name for experiment in results.experiments] == names
    check(results, ODRADEK)


@pytest.mark.soak
@pytest.mark.spark
def test_pipelines_are_measured(tmp_path: Path) -> None:
    """In a child process: a process has one Spark session, and other tests use this one's."""
    names = [name for name in PIPELINES if name != "rigs-standard"]  # the same as rigs-realtime, and slower
    places = ["--directory", str(tmp_path), "--output", str(tmp_path), "--document", str(tmp_path / "benchmarks.md")]
    chosen = ["--alone", "--generator", "librdkafka", "--only", ",".join(names)]
    subprocess.run([sys.executable, "-m", "bench", *TINY, *places, *chosen], check=True, cwd=Path(__file__).parents[2])
    results = Results.load(tmp_path / "results.json")
    assert [experiment.name for experiment in results.experiments] == names
    check(results, ODRADEK)


@pytest.mark.soak
def test_recovery_partitions_and_compaction_are_measured(tmp_path: Path) -> None:
    results = bench(tmp_path, "--alone", "--generator", "librdkafka", "--only", ",".join(SCALES))
    assert [experiment.name for experiment in results.experiments] == list(SCALES)
    check(results, ODRADEK)
    assert "## Recovery, partitions, compaction" in (tmp_path / "benchmarks.md").read_text()


@pytest.mark.soak
def test_clusters_are_measured(tmp_path: Path) -> None:
    results = bench(tmp_path, "--alone", "--generator", "librdkafka", "--only", ",".join(CLUSTERS))
    assert [experiment.name for experiment in results.experiments] == list(CLUSTERS)
    check(results, ODRADEK)
    assert "## Three brokers" in (tmp_path / "benchmarks.md").read_text()


@pytest.mark.soak
@pytest.mark.jvm
@pytest.mark.skipif(jars.missing() is not None, reason=jars.missing() or "")
def test_apache_kafka_is_measured_beside_odradek(tmp_path: Path) -> None:
    names = ["produce-100b", "consume-1kb", *(TRANSACTIONS if HAS_GO else ())]
    results = bench(tmp_path, "--only", ",".join(names))
    assert [experiment.name for experiment in results.experiments] == names
    assert set(results.brokers) == {ODRADEK, KAFKA}
    check(results, ODRADEK)
    check(results, KAFKA)


@pytest.mark.soak
@pytest.mark.go
@pytest.mark.skipif(not HAS_GO, reason="needs a Go toolchain on the PATH")
def test_transactions_of_two_versions_are_compared(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    options = ["--rounds", "2", "--tolerance", "99", "--scale", "0.0005", "--generator", "go"]
    places = ["--directory", str(data), "--output", str(tmp_path)]
    assert main(["--against", "HEAD", *options, "--only", ",".join(TRANSACTIONS), *places]) in {0, 1}
    results = Results.load(tmp_path / "against.json")
    assert [experiment.name for experiment in results.experiments] == list(TRANSACTIONS)
    for key in (BEFORE, AFTER):
        check(results, key)


@pytest.mark.soak
def test_two_versions_are_measured_in_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    names = ["produce-1kb", "start"]
    options = [
        "--rounds",
        "2",
        "--tolerance",
        "99",
        "--scale",
        "0.0005",
        "--generator",
        "librdkafka",
        "--only",
        ",".join(names),
    ]
    code = main(["--against", "HEAD", *options, "--directory", str(data), "--output", str(tmp_path)])
    document = (tmp_path / "against.md").read_text()
    assert code == int("- Worse: " in document)
    results = Results.load(tmp_path / "against.json")
    assert [experiment.name for experiment in results.experiments] == names
    for key in (BEFORE, AFTER):
        check(results, key)
        # Two rounds, and six more of an experiment that took twice as long in both by chance.
        assert {len(experiment.runs[key]) for experiment in results.experiments} <= {2, 8}
    assert list(data.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["against.json", "against.md", "data"]
    rounds = [line.split()[3:6] for line in capsys.readouterr().out.splitlines() if line.startswith("produce 1 KB")]
    assert rounds[2:6] == [
        [BEFORE, "round", "1"],
        [AFTER, "round", "1"],
        [AFTER, "round", "2"],
        [BEFORE, "round", "2"],
    ]


def test_broker_that_does_not_start_is_reported_with_the_end_of_its_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--broker-command", "sh -c 'echo {port} is no good; exit 3'", "--alone", "--output", str(tmp_path)]
    for only in ("produce-100b", "start"):
        assert main([*TINY, *command, "--only", only, "--generator", "librdkafka", "--directory", str(tmp_path)]) == 1
        assert "is no good" in capsys.readouterr().out
