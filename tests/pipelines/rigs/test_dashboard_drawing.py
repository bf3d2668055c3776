"""The drawing fits the terminal, truncates no figures, and is reproducible."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from odradek.pipelines.rigs.dashboard_drawing import draw, share_bar, spark_line
from odradek.pipelines.rigs.dashboard_model import DashboardModel, PumpState, Topics
from odradek.pipelines.rigs.dashboard_records import WarningRecord
from odradek.pipelines.rigs.dashboard_text import clock_text, duration_text, progress_line, summary_lines

TOPICS = Topics()


def filled(scale: int = 1) -> DashboardModel:
    model = DashboardModel(TOPICS, 0.0)
    for second in range(61):
        ends = {topic: {0: second * scale * size} for topic, size in zip(TOPICS.all, (100, 99, 99, 3, 1), strict=True)}
        model.take_ends(float(second), ends)
    for pump in range(300):
        model.take_reading(55.0, str(pump), (0, 6000 * scale - 41))
    for index, rule in enumerate(["pressure high", "temperature high", "pressure rising", "silent"] * 10):
        model.take_warning(
            58.0 + index / 100, WarningRecord(str(100 + index), rule, 187.0, 150.0, 58.0 + index / 100 - 0.021)
        )
    for reason in ["not a record"] * 14 + ["plausible pressure"] * 3 + ["names its pump"] * 2:
        model.take_dead_letter(reason, None)
    return model


def picture(model: DashboardModel, width: int, height: int) -> list[str]:
    output = StringIO()
    Console(file=output, width=width, height=height).print(draw(model, 60.0, "127.0.0.1:9092", width, height))
    return [line.rstrip() for line in output.getvalue().splitlines()]


NARROW = """\
 Odradek   oil rigs, from sensor to alert                  127.0.0.1:9092  1:00
╭─ topics ─────────────────────────────────╮╭─ pipeline ───────────────────────╮
│ topic                   records    per s ││ event → alert, last minute       │
│ → rigs                    6,000      100 ││ p50 21 ms  p99 21 ms             │
│   pressure                5,940       99 ││ lag 40 ≈ 400 ms                  │
│   temperature             5,940       99 ││ ████████████████████████████████ │
│   warnings                  180        3 ││ 300 pumps  260 calm  10 silent   │
│   rigs-dead-letters          60        1 ││ 20 over limit  10 rising         │
╰──────────────────────────────────────────╯╰──────────────────────────────────╯
╭─ latest warnings (40) ───────────────────────────────────────────────────────╮
│   pump  rule                         value   limit      for   times  latency │
│    139  silent                         187     150     0:00       1    21 ms │
│    138  pressure rising                187     150     0:00       1    21 ms │
│    137  temperature high               187     150     0:00       1    21 ms │
│    136  pressure high                  187     150     0:00       1    21 ms │
│    135  silent                         187     150     0:00       1    21 ms │
│    134  pressure rising                187     150     0:00       1    21 ms │
╰──────────────────────────────────────────────────────────────────────────────╯
╭─ dead letters (19) ──────────────────────────────────────────────────────────╮
│ not a record                                                              14 │
│ plausible pressure                                                         3 │
│ names its pump                                                             2 │
╰──────────────────────────────────────────────────────────────────────────────╯"""


def test_the_picture_of_80_columns() -> None:
    assert "\n".join(picture(filled(), 80, 24)) == NARROW


def test_120_columns_show_the_last_minute_and_stand_side_by_side() -> None:
    lines = picture(filled(), 120, 30)
    assert "last minute" in lines[2]
    assert "█" * 20 in lines[3]
    assert "latest warnings" in lines[9]
    assert "dead letters" in lines[9]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 12), (100, 40), (110, 24), (120, 30), (200, 60)])
@pytest.mark.parametrize("scale", [0, 1, 5_000])
def test_it_fits_the_terminal_and_keeps_every_number_whole(width: int, height: int, scale: int) -> None:
    lines = picture(filled(scale), width, height)
    assert max(map(len, lines)) <= width
    assert len(lines) <= max(height - 1, 20)
    assert "…" not in "".join(lines)


def test_nothing_has_come_yet() -> None:
    lines = picture(DashboardModel(TOPICS, 60.0), 80, 24)
    assert sum("none" in line for line in lines) == 2
    assert any("p50 –" in line for line in lines)


def test_a_broker_that_is_away_is_told() -> None:
    model = filled()
    model.is_broker_unreachable = True
    assert "broker unreachable" in picture(model, 80, 24)[0]
    assert progress_line(model, 60.0).endswith("broker unreachable")


def test_long_names_are_cut_and_markup_is_text() -> None:
    model = filled()
    model.take_warning(60.0, WarningRecord("[red]7", "x" * 80))
    model.take_dead_letter("[bold]" + "y" * 74, None)
    lines = picture(model, 80, 24)
    assert max(map(len, lines)) <= 80
    assert any("[red]7" in line and "…" in line for line in lines)


def test_every_state_that_exists_is_seen_in_the_bar() -> None:
    bar = share_bar({PumpState.CALM: 9999, PumpState.RISING: 1, PumpState.OVER_LIMIT: 0, PumpState.SILENT: 1}, 30)
    assert [len(bar.plain[span.start : span.end]) for span in bar.spans] == [28, 1, 1]


def test_sparks() -> None:
    assert spark_line([0, 1, 50, 100]) == " ▁▄█"
    assert spark_line([0.0, 0.0]) == "  "
    assert spark_line([]) == ""


@pytest.mark.parametrize(
    ("duration_ms", "text"), [(None, "–"), (0.04, "0.0 ms"), (9.96, "10 ms"), (999.6, "1.0 s"), (12_340, "12.3 s")]
)
def test_durations(duration_ms: float | None, text: str) -> None:
    assert duration_text(duration_ms) == text


@pytest.mark.parametrize(("seconds", "text"), [(7.9, "0:07"), (750, "12:30"), (3723, "1:02:03"), (-1, "0:00")])
def test_clocks(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


def test_the_summary_tells_it_all() -> None:
    assert summary_lines(filled(), 60.0) == [
        "6,000 records in rigs in 1:00; pressure 5,940, temperature 5,940, warnings 180, rigs-dead-letters 60",
        "lag 40 at the end, 6,000 at most",
        "from event to alert p50 21 ms, p99 21 ms, max 21 ms",
        "warnings: pressure high 10, temperature high 10, pressure rising 10, silent 10",
        "dead letters: not a record 14, plausible pressure 3, names its pump 2",
    ]
