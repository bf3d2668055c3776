"""The Prometheus text exposition format, version 0.0.4."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.metrics.samples import Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_LABEL_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_TEXT_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n"})


def expose(families: Iterable[Family]) -> str:
    lines: list[str] = []
    for definition, points in families:
        lines.append(f"# HELP {definition.name} {definition.text.translate(_TEXT_ESCAPES)}")
        lines.append(f"# TYPE {definition.name} {definition.kind.value}")
        for suffix, labels, value in points:
            pairs = ",".join(f'{name}="{text.translate(_LABEL_ESCAPES)}"' for name, text in labels)
            lines.append(f"{definition.name}{suffix}{f'{{{pairs}}}' if pairs else ''} {number_text(value)}")
    lines.append("")
    return "\n".join(lines)


def number_text(value: float) -> str:
    """Whole numbers without a fraction, so that large counters keep all their digits."""
    if isinstance(value, int):
        return str(int(value))  # True is 1
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
