"""The drawing is as high as the terminal, truncates no figures, and is reproducible."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from odradek.examples.live_view.drawing import Frame, draw, draw_start
from odradek.examples.live_view.drawing_figures import share_bar
from odradek.examples.live_view.drawing_panels import chart_lines, spark_line
from odradek.examples.live_view.layout import Size, allocate
from odradek.examples.live_view.model import LiveViewModel
from odradek.examples.live_view.stages import Stages
from odradek.examples.live_view.text import duration_text, progress_line, summary_lines
from odradek.pipelines.operating.figures import clock_text
from tests.examples.live_view.seen import BEGAN_S, CARDS, RIGS, dead_letter, iso, reading, record, warning

if TYPE_CHECKING:
    from rich.console import RenderableType

ADDRESS = "127.0.0.1:9092"


def filled(scale: int = 1) -> LiveViewModel:
    model = LiveViewModel(RIGS, BEGAN_S)
    for second in range(61):
        ends = {topic: {0: second * scale * size} for topic, size in zip(RIGS.topics, (100, 99, 99, 3, 1), strict=True)}
        model.take_ends(BEGAN_S + second, ends)
    model.take(BEGAN_S, warning(1, "pressure high", BEGAN_S - 12))  # during the warm-up
    for pump in range(300):
        model.take(BEGAN_S + 55, reading(str(pump), f"0:{max(0, 6000 * scale - 41)}"))
    for index, rule in enumerate(["pressure high", "temperature high", "pressure rising", "silent"] * 10):
        now_s = BEGAN_S + 58 + index / 50
        model.take(now_s, warning(100 + index, rule, now_s - 0.021, value=187.0, bound=150.0))
    for reason in ["not a record"] * 14 + ["plausible pressure"] * 3 + ["names its pump"] * 2:
        model.take(BEGAN_S + 58, dead_letter(reason))
    model.rows["pumps by pressure"] = [(7 + index, 187.5 - index, 40.0, 55.0) for index in range(60)]
    return model


def lines_of(drawn: RenderableType, width: int, height: int) -> list[str]:
    output = StringIO()
    Console(file=output, width=width, height=height).print(drawn, end="")
    return [line.rstrip() for line in output.getvalue().splitlines()]


def picture(model: LiveViewModel, width: int, height: int) -> list[str]:
    frame = Frame(width, height, ADDRESS, f"in another terminal: odradek consume warnings -b {ADDRESS}")
    return lines_of(draw(model, BEGAN_S + 60, frame), width, height)


NARROW = """\
 Odradek   oil rigs, from sensor to alert                  127.0.0.1:9092  1:00
╭─ topics ─────────────────────────────────╮╭─ pipeline ───────────────────────╮
│ topic                   records    per s ││ event → alert, last minute       │
│ → rigs                    6,000      100 ││ p50 21 ms  p99 21 ms             │
│   pressure                5,940       99 ││ lag 40 ≈ 400 ms                  │
│   temperature             5,940       99 ││ ████████████████████████████████ │
│   warnings                  180        3 ││ 300 pumps  260 calm  10 rising   │
│   rigs-dead-letters          60        1 ││ 20 over limit  10 silent         │
╰──────────────────────────────────────────╯╰──────────────────────────────────╯
╭─ latest warnings (41) ───────────────────────────────────────────────────────╮
│ pump  rule                            value  limit      for   times  latency │
│  139  silent                            187    150     0:00       1    21 ms │
│  138  pressure rising                   187    150     0:00       1    21 ms │
│  137  temperature high                  187    150     0:00       1    21 ms │
│  136  pressure high                     187    150     0:00       1    21 ms │
│  135  silent                            187    150     0:00       1    21 ms │
│  134  pressure rising                   187    150     0:00       1    21 ms │
╰──────────────────────────────────────────────────────────────────────────────╯
╭─ dead letters (19) ──────────────────────────────────────────────────────────╮
│ not a record                        ██████████████████████████████        14 │
│ plausible pressure                  ██████                                 3 │
│ names its pump                      ████                                   2 │
╰──────────────────────────────────────────────────────────────────────────────╯
 Ctrl-C stops   in another terminal: odradek consume warnings -b 127.0.0.1:9092"""


def test_the_picture_of_80_columns() -> None:
    assert "\n".join(picture(filled(), 80, 24)) == NARROW


def test_120_columns_stand_side_by_side_and_fill_the_screen() -> None:
    lines = picture(filled(), 120, 40)
    assert "last minute" in lines[2]
    assert "█" * 20 in lines[3]
    assert "latest warnings" in lines[9]
    assert "dead letters" in lines[9]
    assert any("pumps by pressure" in line for line in lines)
    assert any("warnings per second" in line for line in lines)
    assert not [line for line in lines if "│" + " " * 40 in line]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 20), (100, 40), (110, 24), (120, 30), (200, 60)])
@pytest.mark.parametrize("scale", [0, 1, 5_000])
def test_it_fits_the_terminal_and_keeps_every_number_whole(width: int, height: int, scale: int) -> None:
    lines = picture(filled(scale), width, height)
    assert max(map(len, lines)) <= width
    assert len(lines) == height
    assert "…" not in "".join(lines)
    assert "Ctrl-C stops" in lines[-1]


def test_nothing_has_come_yet() -> None:
    lines = picture(LiveViewModel(RIGS, BEGAN_S + 60), 80, 24)
    assert sum("none" in line for line in lines) == 2
    assert any("p50 –" in line for line in lines)


def test_the_p99_of_the_warm_up_is_not_shown() -> None:
    model = LiveViewModel(RIGS, BEGAN_S)
    model.take(BEGAN_S + 50, warning(7, "pressure high", BEGAN_S + 38))
    shown = picture(model, 80, 24)[3]
    assert "p50 12.0 s  warming up: 20 s" in shown
    assert "p99" not in shown
    assert "(warming up)" in progress_line(model, BEGAN_S + 60)
    assert summary_lines(model, BEGAN_S + 60)[2].endswith("during the warm-up")


def test_a_broker_that_is_away_is_reported() -> None:
    model = filled()
    model.is_broker_unreachable = True
    assert "broker unreachable" in picture(model, 80, 24)[0]
    assert progress_line(model, BEGAN_S + 60).endswith("broker unreachable")


def test_a_partition_that_is_left_out_is_reported() -> None:
    model = filled()
    model.read_failure = "topic warnings, partition 0: corrupt"
    assert "not read: topic warnings, partition 0: corrupt" in picture(model, 120, 24)[-1]
    assert progress_line(model, BEGAN_S + 60).endswith("not read: topic warnings, partition 0: corrupt")


def test_three_brokers_leave_room_for_the_title() -> None:
    servers = "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    lines = lines_of(draw(filled(), BEGAN_S + 60, Frame(80, 24, servers, "")), 80, 24)
    assert lines[0] == " Odradek   oil rigs, from sensor to alert       127.0.0.1:9092 and 2 more  1:00"


def test_long_names_are_cut_and_markup_is_text() -> None:
    model = filled()
    model.take(BEGAN_S + 60, record("warnings", hcid="[red]7", rule="x" * 80))
    model.take(BEGAN_S + 60, dead_letter("[bold]" + "y" * 74))
    lines = picture(model, 80, 24)
    assert max(map(len, lines)) <= 80
    assert any("[red]7" in line and "…" in line for line in lines)


def test_another_example_is_drawn_too() -> None:
    model = LiveViewModel(CARDS, BEGAN_S)
    model.take_ends(BEGAN_S, {"payments": {0: 0}})
    model.take(BEGAN_S + 58, record("alerts", account="acct-7", amount=99.5, country="BR", at=iso(BEGAN_S + 57)))
    for width, height in ((80, 24), (120, 40)):
        text = "\n".join(picture(model, width, height))
        for shown in ("payment → alert", "blocked, EUR 99.5", "alerts 1", "acct-7", "BR"):
            assert shown in text


def test_what_is_starting_is_shown_with_seconds() -> None:
    stages = Stages.named("broker", "Spark", "flows", "first output")
    stages.advance(BEGAN_S)
    stages.advance(BEGAN_S + 0.4, ADDRESS)
    stages.note("Spark 4.3.0 on local[2]")
    stages.picture = ["● rigs  topic rigs", "└─ ○ readings  sql"]
    lines = lines_of(draw_start("oil rigs", stages, BEGAN_S + 5.6, Frame(80, 24, ADDRESS, "")), 80, 24)
    assert len(lines) == 24
    assert "✓ broker          400 ms  127.0.0.1:9092" in lines[2]
    assert "Spark            5.2 s  Spark 4.3.0 on local[2]" in lines[3]
    assert "· flows" in lines[4]
    assert any("● rigs  topic rigs" in line for line in lines)
    assert lines[-1] == " Ctrl-C stops"
    failing = Frame(80, 24, ADDRESS, "a hint", failure="the pipeline failed: it broke; retrying in 1 s")
    lines = lines_of(draw_start("oil rigs", stages, BEGAN_S + 5.6, failing), 80, 24)
    assert lines[-1] == " Ctrl-C stops   the pipeline failed: it broke; retrying in 1 s"
    stages.advance_to("first output", BEGAN_S + 9)
    stages.advance_to("flows", BEGAN_S + 9)  # has ended
    assert not stages.is_over
    stages.advance(BEGAN_S + 12)
    assert stages.is_over
    assert [stage.seconds(0) for stage in stages.stages] == pytest.approx([0.4, 8.6, 0, 3])


@given(
    room=st.integers(0, 80),
    sizes=st.lists(st.builds(Size, st.integers(3, 9), st.integers(0, 40), st.booleans()), max_size=5),
)
def test_the_lines_of_a_column_are_all_used(room: int, sizes: list[Size]) -> None:
    lines = allocate(room, sizes)
    assert all(not given or given >= size.least for given, size in zip(lines, sizes, strict=True))
    assert sum(lines) == (room if any(lines) else 0)
    if sizes and sizes[0].least <= room:
        assert lines[0]


def test_every_state_that_exists_is_seen_in_the_bar() -> None:
    meter = filled().states
    assert meter is not None
    bar = share_bar(meter, {"calm": 9999, "rising": 1, "over limit": 0, "silent": 1}, 30)
    assert [len(bar.plain[span.start : span.end]) for span in bar.spans] == [28, 1, 1]


def test_sparks_and_charts() -> None:
    assert spark_line([0, 1, 50, 100]) == " ▁▄█"
    assert spark_line([0.0, 0.0]) == "  "
    assert spark_line([]) == ""
    assert [line.plain for line in chart_lines([0.0] * 9 + [1.0, 4.0, 8.0], 2)] == ["8/s        █", "         ▂██"]
    assert [line.plain for line in chart_lines([0.0] * 6, 2)] == ["0/s   ", "      "]


@pytest.mark.parametrize(
    ("duration_ms", "text"), [(None, "–"), (0.04, "0.0 ms"), (9.96, "10 ms"), (999.6, "1.0 s"), (12_340, "12.3 s")]
)
def test_durations(duration_ms: float | None, text: str) -> None:
    assert duration_text(duration_ms) == text


@pytest.mark.parametrize(("seconds", "text"), [(7.9, "0:07"), (750, "12:30"), (3723, "1:02:03"), (-1, "0:00")])
def test_clocks(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


RECORDS = "rigs 6,000, pressure 5,940, temperature 5,940, warnings 180, rigs-dead-letters 60"


def test_the_summary_tells_it_all() -> None:
    assert summary_lines(filled(), BEGAN_S + 60) == [
        f"records in 1:00, all since the start: {RECORDS}",
        "lag 40 at the end, 6,000 at most",
        "event → alert p50 21 ms, p99 21 ms, max 21 ms, without 30 s of warm-up",
        "latest warnings: pressure high 11, temperature high 10, pressure rising 10, silent 10",
        "dead letters: not a record 14, plausible pressure 3, names its pump 2",
    ]
