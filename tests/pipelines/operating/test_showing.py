"""A status on the terminal and as Prometheus metrics."""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from odradek.cli.pipeline.started import flow_row
from odradek.conventions.figures import brief_duration_text
from odradek.pipelines.operating.figures import brief_count_text, clock_text, figures_line, rate_text
from odradek.pipelines.operating.metrics import MetricsServer, metrics_text
from odradek.pipelines.operating.screens import LiveLine
from odradek.pipelines.operating.status import ExpectationStatus, FlowStatus, PipelineStatus, State
from odradek.pipelines.spark.computing.counts import BatchReport

FLOWS = (
    FlowStatus(
        "rigs", 12, "2026-11-15T10:53:20.000Z", 320, 13, 1000.2, 998.4,
        {"rigs": 13_000}, {"rigs": 12}, {"rigs": {"0": 13_000}}, unparsed=4,
    ),
    FlowStatus(
        "a_step_with_a_name_that_does_not_fit_on_any_line", 3, "2026-11-15T10:53:20.000Z", 12_300, 4, 1000.2, 4.2,
        {"rigs": 2_500_000}, {"rigs": 2_400_000}, {}, 1_234_567, 987_654_321,
    ),
)  # fmt: skip
STATUS = PipelineStatus(
    "rigs", State.RUNNING, engine="standard", pid=4711, running_since_s=1000.0, started_s=990.5, restarts=2,
    last_error="no broker answers", last_error_s=1090.0, flows=FLOWS,
    expectations=(ExpectationStatus("readings", 'plausible "pressure"', "quarantine", 7),),
)  # fmt: skip


def test_a_line_is_written_again_below_messages(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    screen = LiveLine()
    screen.show(PipelineStatus("p", State.STARTING, note="starting Spark"))
    screen.show(replace(STATUS, running_since_s=time.time() - 100))
    screen.say("failed: no broker answers")
    screen.show(replace(STATUS, state=State.WAITING))
    screen.end()
    found = capsys.readouterr()
    _, first, second = found.out.split("\r\033[K")[:3]
    assert first.startswith("rigs running 1:40: input 1,000/s, processed 998/s, batch")
    assert (len(first), second) == (59, "")
    assert found.err == "failed: no broker answers\n"
    assert found.out.endswith(f"rigs: {figures_line(STATUS)}\n")


def test_the_watermark_and_late_rows_are_shown() -> None:
    marked = replace(FLOWS[0], watermark="1970-01-01T00:17:00.000Z", late_rows=12)
    status = replace(STATUS, flows=(marked, FLOWS[1]))
    assert "12 late" in figures_line(status)
    lines = metrics_text(status).splitlines()
    assert 'odradek_pipeline_late_rows_total{pipeline="rigs",flow="rigs"} 12' in lines
    assert 'odradek_pipeline_watermark_timestamp_seconds{pipeline="rigs",flow="rigs"} 1020' in lines


def test_one_is_one() -> None:
    status = replace(STATUS, flows=(replace(FLOWS[0], unparsed=1, state_rows=1, state_bytes=100),))
    assert "state 1 row, 100 B" in figures_line(status)
    assert str(BatchReport("rigs", 0, 1, 0, (), 0.5)) == "rigs batch 0: 1 row, 500 ms"


def test_the_rows_of_sinks_are_metrics() -> None:
    status = replace(STATUS, flows=(replace(FLOWS[0], written={"warnings": 1200, "latest": 7}), FLOWS[1]))
    metrics = metrics_text(status).splitlines()
    assert 'odradek_pipeline_written_rows_total{pipeline="rigs",flow="rigs",sink="latest"} 7' in metrics


def test_figures_are_short() -> None:
    assert [rate_text(each) for each in (0, 0.25, 9.94, 12.3, 1234.5, 12_300_000)] == [
        "0", "0.2", "9.9", "12", "1,234", "12.3 M",
    ]  # fmt: skip
    assert [brief_duration_text(each) for each in (3, 999.4, 999.6, 12_345)] == ["3.0 ms", "999 ms", "1.0 s", "12.3 s"]
    assert [clock_text(each) for each in (7, 750, 3723, 100_000)] == ["0:07", "12:30", "1:02:03", "1 d 3 h"]
    assert brief_count_text(999_999) == "999,999"


def test_a_line_tells_all_that_matters() -> None:
    assert figures_line(STATUS) == (
        "input 1,000/s, processed 998/s, batch 12.3 s, lag 2,400,000, state 1.2 M rows, 987.7 MB, "
        '4 not parsed, 7 × plausible "pressure" (quarantine)'
    )


VIOLATIONS = (
    'odradek_pipeline_expectation_violations_total{pipeline="rigs",step="readings",'
    'expectation="plausible \\"pressure\\"",otherwise="quarantine"} 7'
)


def test_metrics_have_units_and_labels() -> None:
    lines = metrics_text(STATUS).splitlines()
    for line in (
        'odradek_pipeline_up{pipeline="rigs"} 1',
        'odradek_pipeline_restarts_total{pipeline="rigs"} 2',
        'odradek_pipeline_batches_total{pipeline="rigs",flow="rigs"} 13',
        'odradek_pipeline_batch_duration_seconds{pipeline="rigs",flow="rigs"} 0.32',
        'odradek_pipeline_read_records_total{pipeline="rigs",flow="rigs",topic="rigs"} 13000',
        'odradek_pipeline_lag_records{pipeline="rigs",flow="rigs",topic="rigs"} 12',
        'odradek_pipeline_unparsed_records_total{pipeline="rigs",flow="rigs"} 4',
        VIOLATIONS,
    ):
        assert line in lines


def test_metrics_are_in_the_text_format() -> None:
    """Every family has its help and type before its samples, and occurs once."""
    sample = re.compile(r'(\w+)\{(?:\w+="(?:[^"\\\n]|\\.)*",?)*\} -?[0-9.e+-]+')
    families: list[str] = []
    lines = iter(metrics_text(STATUS).splitlines())
    for line in lines:
        if line.startswith("# HELP "):
            families.append(line.split()[2])
            kind = next(lines).split()
            assert kind[:3] == ["#", "TYPE", families[-1]]
            assert (kind[3] == "counter") == families[-1].endswith("_total")
        else:
            found = sample.fullmatch(line)
            assert found is not None, line
            assert found[1] == families[-1]
    assert len(families) == len(set(families)) > 10


def test_state_without_a_number_of_rows_has_its_size() -> None:
    """Spark does not count the rows in the state of a join of streams."""
    uncounted = replace(FLOWS[1], state_rows=0, counts_state_rows=False)
    status = replace(STATUS, flows=(replace(FLOWS[0], state_rows=120), uncounted))
    assert ", state 987.7 MB, " in figures_line(status)
    assert flow_row(uncounted)[-2:] == (None, "987.7 MB")
    samples = [line for line in metrics_text(status).splitlines() if line.startswith("odradek_pipeline_state_")]
    names = [line.partition("{")[0] for line in samples if uncounted.name in line]
    assert names == ["odradek_pipeline_state_memory_bytes"]


def test_state_that_is_counted_and_empty_has_no_rows() -> None:
    """RocksDB has memory also without rows."""
    empty = replace(FLOWS[1], state_rows=0, state_bytes=4096)
    status = replace(STATUS, flows=(empty,))
    assert f'odradek_pipeline_state_rows{{pipeline="rigs",flow="{empty.name}"}} 0' in metrics_text(status).splitlines()
    assert ", state 0 rows, 4.1 KB, " in figures_line(status)


def test_a_pipeline_that_waits_is_not_up() -> None:
    assert 'odradek_pipeline_up{pipeline="rigs"} 0' in metrics_text(replace(STATUS, state=State.WAITING))


def test_metrics_are_served() -> None:
    with MetricsServer("127.0.0.1", 0) as server:
        server.text = metrics_text(STATUS)
        with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert answer.read().decode() == server.text
        with pytest.raises(urllib.error.HTTPError, match="404") as missing:
            urllib.request.urlopen(f"http://{server.address}/", timeout=10)
        missing.value.close()


def test_a_port_that_is_taken_is_reported() -> None:
    with MetricsServer("127.0.0.1", 0) as server, pytest.raises(OSError, match="in use"):
        MetricsServer("127.0.0.1", int(server.address.rpartition(":")[2]))
