"""Formats numbers, sizes and durations for display."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.figures import brief_duration_text, size_text

if TYPE_CHECKING:
    from odradek.pipelines.operating.status import PipelineStatus


def brief_count_text(count: float) -> str:
    """A count as `1,234` or `12.3 M`, in at most seven characters."""
    for size, unit in ((1e9, "G"), (1e6, "M")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:,.0f}"


def rate_text(per_s: float) -> str:
    return f"{per_s:.1f}" if 0 < per_s < 9.95 else brief_count_text(per_s)


def clock_text(seconds: float) -> str:
    """A duration as `0:07`, `12:30`, `1:02:03` or `3 d 4 h`."""
    whole = max(0, int(seconds))
    if whole >= 86_400:
        return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def figures_line(status: PipelineStatus) -> str:
    """The status of a pipeline in one line."""
    parts = [
        f"input {rate_text(status.input_per_s)}/s",
        f"processed {rate_text(status.processed_per_s)}/s",
        f"batch {brief_duration_text(status.batch_ms)}",
        "lag unknown before the first batch" if status.lag is None else f"lag {status.lag:,}",
    ]
    if status.state_bytes:
        noun = "row" if status.state_rows == 1 else "rows"
        rows = f"{brief_count_text(status.state_rows)} {noun}, " if status.state_rows is not None else ""
        parts.append(f"state {rows}{size_text(status.state_bytes)}")
    if status.late_rows:
        parts.append(f"{status.late_rows:,} late")
    if status.unparsed:
        parts.append(f"{status.unparsed:,} not parsed")
    parts += [f"{each.rows:,} × {each.name} ({each.otherwise})" for each in status.expectations if each.rows]
    return ", ".join(parts)
