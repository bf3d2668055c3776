"""What a page says about the state of the cluster that it shows, if the state is old or incomplete. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.console.views.figures import age

if TYPE_CHECKING:
    from odradek.console.cluster.pacing import Freshness


def state_notice(freshness: Freshness) -> str:
    """Empty if there is nothing to say."""
    if freshness.age_s is None:
        return ""
    shown = f"Shown is the state of {age(freshness.age_s * 1000)} ago."
    if freshness.trouble:
        return f"{freshness.trouble}. {shown}"
    missing = _missing(freshness.silent)
    if freshness.is_old:
        return f"{shown} {missing}".rstrip()
    return missing


def _missing(silent: tuple[int, ...]) -> str:
    if not silent:
        return ""
    names = ", ".join(map(str, silent))
    subject = f"Broker {names} does" if len(silent) == 1 else f"Brokers {names} do"
    return f"{subject} not answer: figures of the partitions there are missing."
