"""A live view as text without a terminal: a line per second, JSON objects, a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.conventions.figures import brief_duration_text
from odradek.pipelines.operating.figures import clock_text

if TYPE_CHECKING:
    from odradek.examples.live_view.model import LiveViewModel

MOST_SUMMARY_NAMES = 12


def duration_text(duration_ms: float | None) -> str:
    return "–" if duration_ms is None else brief_duration_text(duration_ms)


def number_text(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}"


def servers_text(bootstrap_servers: str) -> str:
    """The first address and the number of others: three addresses would take most of a line."""
    first, *others = bootstrap_servers.split(",")
    return f"{first} and {len(others)} more" if others else first


def lag_text(model: LiveViewModel, now_s: float) -> str:
    if model.lag is None:
        return "–"
    seconds, records = model.lag.seconds(now_s), model.lag.records
    about = "" if seconds is None or not records else f" ≈ {duration_text(seconds * 1000)}"
    return f"{records:,}{about}"


def progress_line(model: LiveViewModel, now_s: float) -> str:
    """The current figures in one line."""
    parts = ["  ".join(f"{topic} {model.topics.rate(topic, now_s):,.0f}/s" for topic in model.topics.topics)]
    if model.lag is not None:
        parts.append(f"lag {lag_text(model, now_s)}")
    if model.latency is not None and (spread := model.latency.last_minute_ms(now_s)):
        warm_up = " (warming up)" if model.latency.is_of_warm_up else ""
        title = model.latency.declared.title
        parts.append(f"{title} p50 {duration_text(spread['p50'])}, p99 {duration_text(spread['p99'])}{warm_up}")
    if model.states is not None:
        states = ", ".join(f"{count} {state}" for state, count in model.states.counts(now_s).items() if count)
        parts.append(f"{model.states.declared.entities}: {states or 'none'}")
    parts += [f"{total.declared.title} {number_text(total.total)}" for total in model.totals]
    parts += [f"not read: {model.read_failure}"] if model.read_failure else []
    return "  ".join([*parts, *(["broker unreachable"] if model.is_broker_unreachable else [])])


def shared_facts(model: LiveViewModel, now_s: float, latency_ms: dict[str, float]) -> dict[str, Any]:
    facts: dict[str, Any] = {"records": {topic: model.topics.total(topic) for topic in model.topics.topics}}
    if model.lag is not None:
        facts["lag"] = model.lag.records
    if model.latency is not None:
        facts["latency_ms"] = {name: round(value, 3) for name, value in latency_ms.items()}
        facts["is_latency_of_warm_up"] = model.latency.is_of_warm_up
    if model.states is not None:
        facts["states"] = model.states.counts(now_s)
    if model.totals:
        facts["totals"] = {total.declared.title: total.total for total in model.totals}
    return facts


def progress_facts(model: LiveViewModel, now_s: float) -> dict[str, Any]:
    return {
        **shared_facts(model, now_s, {} if model.latency is None else model.latency.last_minute_ms(now_s)),
        "records_per_second": {topic: round(model.topics.rate(topic, now_s), 1) for topic in model.topics.topics},
        "is_broker_unreachable": model.is_broker_unreachable,
        **({"read_failure": model.read_failure} if model.read_failure else {}),
    }


def summary_facts(model: LiveViewModel, now_s: float) -> dict[str, Any]:
    return {
        "seconds": round(now_s - model.began_s, 1),
        **shared_facts(model, now_s, {} if model.latency is None else model.latency.all_ms()),
        **({} if model.lag is None else {"greatest_lag": model.lag.greatest}),
        "counts": {title: dict(table.counts.most_common()) for title, table in model.tables.items()},
    }


def summary_lines(model: LiveViewModel, now_s: float) -> list[str]:
    facts = summary_facts(model, now_s)
    written = ", ".join(f"{topic} {total:,}" for topic, total in facts["records"].items())
    lines = [f"records in {clock_text(facts['seconds'])}, all since the start: {written}"]
    if model.lag is not None:
        lines.append(f"lag {facts['lag']:,} at the end, {facts['greatest_lag']:,} at most")
    if model.latency is not None and facts["latency_ms"]:
        spread = ", ".join(f"{name} {duration_text(value)}" for name, value in facts["latency_ms"].items())
        declared = model.latency.declared
        note = "during the warm-up" if model.latency.is_of_warm_up else f"without {declared.warm_up_s:.0f} s of warm-up"
        lines.append(f"{declared.title} {spread}, {note}")
    lines += [f"{total.declared.title} {number_text(total.total)}" for total in model.totals]
    for title, counts in facts["counts"].items():
        if counts:
            shown = list(counts.items())[:MOST_SUMMARY_NAMES]
            lines.append(f"{title}: " + ", ".join(f"{name} {count:,}" for name, count in shown))
    return lines
