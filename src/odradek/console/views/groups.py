"""The list of groups, and one group with its members, lags and trend. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from odradek.console.models import BUCKET_S, Series
from odradek.console.views.figures import ranges, sparkline
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.groups import GroupState, ListedGroup

STEADY_SHARE = 0.05  # a change of the lag within this share counts as steady,
STEADY_RECORDS = 20  # and so does one of a few records
MOST_TOPICS = 20  # of a member's assignment
LINE_POINTS = 60
TREND_POINTS = 12
CURRENT_POINTS = 6  # an older value is not shown as the lag, unless the last reading is older too
KEPT_POINTS = 90  # with the last two readings, which may be five minutes apart


class GroupRow(NamedTuple):
    group: ListedGroup | GroupState
    members: int | None
    lag: int | None
    line: str
    trend: str


def tone_of(state: str) -> str:
    return {"Stable": "good", "Empty": "", "Dead": "bad"}.get(state, "warn")


def last_value(values: Sequence[float | None], lags_age_s: float = 0.0) -> int | None:
    """The last value of the last minute, or of the last reading if that was longer ago."""
    points = max(CURRENT_POINTS, int(lags_age_s // BUCKET_S) + 2)
    known = [value for value in values[-points:] if value is not None]
    return round(known[-1]) if known else None


def trend_of(values: Sequence[float | None], lags_age_s: float = 0.0) -> str:
    """`growing`, `shrinking` or `steady` over the last two minutes, or between the last two values if they are further
    apart; empty without two values, or without a lag."""
    recent = [value for value in values[-TREND_POINTS:] if value is not None]
    known = recent if len(recent) > 1 else [value for value in values if value is not None][-2:]
    if len(known) < 2 or last_value(values, lags_age_s) is None:
        return ""
    change = known[-1] - known[0]
    if abs(change) <= max(max(known) * STEADY_SHARE, STEADY_RECORDS):
        return "steady"
    return "growing" if change > 0 else "shrinking"


def group_row(
    group: ListedGroup | GroupState, members: int | None, lags: Series, now_s: float, lags_age_s: float
) -> GroupRow:
    values = lags.points(group.name, now_s, KEPT_POINTS)
    lag, trend = last_value(values, lags_age_s), trend_of(values, lags_age_s)
    return GroupRow(group, members, lag, sparkline(values[-LINE_POINTS:]), trend)


def assignment_text(assignment: Sequence[tuple[str, int]]) -> str:
    """`orders 0–2, 4 · payments 2`; of many topics the first ones, and how many there are. Empty without partitions."""
    parts = [
        f"{topic} {ranges([index for _topic, index in keys])}"
        for topic, keys in islice(groupby(sorted(assignment), itemgetter(0)), MOST_TOPICS)
    ]
    topics = len({topic for topic, _index in assignment})
    if topics > MOST_TOPICS:
        parts.append(f"… {count_text(len(assignment), 'partition')} of {count_text(topics, 'topic')}")
    return " · ".join(parts)
