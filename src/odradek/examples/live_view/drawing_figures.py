"""Draws latency, lag, states and totals as lines of text. Imports rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from odradek.examples.live_view.text import duration_text, lag_text, number_text

if TYPE_CHECKING:
    from odradek.examples.live_view.definition import Figures
    from odradek.examples.live_view.entity_states import StateMeter
    from odradek.examples.live_view.model import LiveViewModel

LABEL = "bright_black"


def figure_rows(model: LiveViewModel, figures: Figures, now_s: float, width: int) -> list[Text]:
    """One line or more for each declared figure; their number does not depend on the values."""
    rows: list[Text] = []
    if figures.latency is not None:
        rows += latency_rows(model, now_s)
    if figures.lag is not None and model.lag is not None:
        unit = "" if model.lag.records else " records"
        rows.append(Text.assemble(("lag ", LABEL), (lag_text(model, now_s), "bold"), (unit, LABEL)))
    if figures.states is not None and model.states is not None:
        rows += state_rows(model.states, now_s, width)
    titles = {total.title for total in figures.totals}
    for total in model.totals:
        if total.declared.title in titles:
            rows.append(Text.assemble((f"{total.declared.title} ", LABEL), (number_text(total.total), "bold")))
    for row in rows:
        row.no_wrap, row.overflow = True, "ellipsis"
    return rows


def latency_rows(model: LiveViewModel, now_s: float) -> list[Text]:
    meter = model.latency
    assert meter is not None
    spread = meter.last_minute_ms(now_s)
    left_s = meter.warm_up_left_s(now_s)
    is_warming_up = bool(spread) and meter.is_of_warm_up
    color = "bold yellow" if is_warming_up else "bold green"
    p99 = [] if is_warming_up else [("  p99 ", LABEL), (duration_text(spread.get("p99")), color)]
    note = f"  warming up: {left_s:.0f} s" if left_s else "  warming up" if is_warming_up else ""
    return [
        Text.assemble((f"{meter.declared.title}, last minute", LABEL)),
        Text.assemble(("p50 ", LABEL), (duration_text(spread.get("p50")), color), *p99, (note, "yellow")),
    ]


def state_rows(meter: StateMeter, now_s: float, width: int) -> list[Text]:
    counts = meter.counts(now_s)
    total = sum(counts.values())
    names = list(counts)
    half = (len(names) + 1) // 2
    head = Text(f"{total:,} {meter.declared.entities}  ", style="bold")
    return [
        share_bar(meter, counts, width),
        Text.assemble(head, *state_parts(meter, counts, names[:half])),
        Text.assemble(*state_parts(meter, counts, names[half:])),
    ]


def state_parts(meter: StateMeter, counts: dict[str, int], names: list[str]) -> list[tuple[str, str]]:
    return [(f"{counts[name]:,} {name}  ", meter.color(name)) for name in names]


def share_bar(meter: StateMeter, counts: dict[str, int], width: int) -> Text:
    """A bar with the share of entities in each state; every state that occurs gets at least one block."""
    total = sum(counts.values())
    if not total:
        return Text("─" * width, style=LABEL)
    widths = {name: max(1, count * width // total) if count else 0 for name, count in counts.items()}
    widest = max(widths, key=lambda name: widths[name])
    widths[widest] += width - sum(widths.values())
    return Text.assemble(*[("█" * widths[name], meter.color(name)) for name in counts])
