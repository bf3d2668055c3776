"""The dashboard as text without a terminal: a line per second, JSON objects, a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.pipelines.rigs.dashboard_model import DashboardModel


def duration_text(duration_ms: float | None) -> str:
    if duration_ms is None:
        return "–"
    if duration_ms < 9.95:
        return f"{duration_ms:.1f} ms"
    return f"{duration_ms:.0f} ms" if duration_ms < 999.5 else f"{duration_ms / 1000:.1f} s"


def clock_text(seconds: float) -> str:
    """A duration as `0:07`, `12:30` or `1:02:03`."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def number_text(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}"


def lag_text(model: DashboardModel, now_s: float) -> str:
    seconds = model.lag_s(now_s)
    about = "" if seconds is None or not model.lag else f" ≈ {duration_text(seconds * 1000)}"
    return f"{model.lag:,}{about}"


def progress_line(model: DashboardModel, now_s: float) -> str:
    """The current figures in one line."""
    rates = "  ".join(f"{topic} {model.rate(topic, now_s):,.0f}/s" for topic in model.topics.all)
    spread = model.latencies_ms(now_s)
    latency = f"  alert p50 {duration_text(spread['p50'])}, p99 {duration_text(spread['p99'])}" if spread else ""
    pumps = ", ".join(f"{count} {state}" for state, count in model.pump_states(now_s).items() if count)
    unreachable = "  broker unreachable" if model.is_broker_unreachable else ""
    return f"{rates}  lag {lag_text(model, now_s)}{latency}  pumps: {pumps or 'none'}{unreachable}"


def progress_facts(model: DashboardModel, now_s: float) -> dict[str, Any]:
    return {
        "records": {topic: model.total(topic) for topic in model.topics.all},
        "records_per_second": {topic: round(model.rate(topic, now_s), 1) for topic in model.topics.all},
        "lag": model.lag,
        "latency_ms": rounded(model.latencies_ms(now_s)),
        "pumps": {state.value: count for state, count in model.pump_states(now_s).items()},
        "is_broker_unreachable": model.is_broker_unreachable,
    }


def summary_facts(model: DashboardModel, now_s: float) -> dict[str, Any]:
    return {
        "seconds": round(now_s - model.began_s, 1),
        "records": {topic: model.total(topic) for topic in model.topics.all},
        "warnings": dict(model.rules.most_common()),
        "dead_letters": dict(model.reasons.most_common()),
        "latency_ms": rounded(model.all_latencies_ms()),
        "lag": model.lag,
        "greatest_lag": model.greatest_lag,
        "pumps": {state.value: count for state, count in model.pump_states(now_s).items()},
    }


def summary_lines(model: DashboardModel, now_s: float) -> list[str]:
    facts = summary_facts(model, now_s)
    records: dict[str, int] = facts["records"]
    source, *outputs = records.items()
    lines = [
        f"{source[1]:,} records in {source[0]} in {clock_text(facts['seconds'])}; "
        + ", ".join(f"{topic} {total:,}" for topic, total in outputs),
        f"lag {facts['lag']:,} at the end, {facts['greatest_lag']:,} at most",
    ]
    if facts["latency_ms"]:
        spread = ", ".join(f"{name} {duration_text(value)}" for name, value in facts["latency_ms"].items())
        lines.append(f"from event to alert {spread}")
    for title, counts in (("warnings", facts["warnings"]), ("dead letters", facts["dead_letters"])):
        if counts:
            lines.append(f"{title}: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
    return lines


def rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in figures.items()}
