"""Rules on consumer groups: lag, groups without members, groups that do not become stable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import warning
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.admin.doctor.cluster.facts import ClusterFacts, GroupFacts
    from odradek.admin.doctor.finding import Finding

REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
SMALLEST_GROWTH = 1_000
FASTER = "Add members, up to one for each partition, or make them faster"


def large_lag(facts: ClusterFacts) -> Iterator[Finding]:
    most = facts.limits.most_lag
    found = [(each, lag) for each, lag in _by_lag(facts) if lag > most and each.state != "Empty"]
    if found:
        yield warning(
            f"groups are more than {most:,} records behind",
            [f"{each.name}: {count_text(lag, 'record')}" for each, lag in found],
            f"{FASTER}: odradek group describe {found[0][0].name}",
        )


def growing_lag(facts: ClusterFacts) -> Iterator[Finding]:
    """Only groups with members, and only a growth that is no matter of one commit."""
    found = [
        (each, lag)
        for each, lag in _by_lag(facts)
        if each.growth >= SMALLEST_GROWTH and each.interval_s > 0 and each.state != "Empty"
    ]
    if found:
        yield warning(
            "groups fall behind: their lag grows",
            [f"{each.name}: {lag:,} records, +{each.growth / each.interval_s:,.0f}/s" for each, lag in found],
            f"{FASTER}: odradek group describe {found[0][0].name}",
        )


def abandoned(facts: ClusterFacts) -> Iterator[Finding]:
    found = [(each, lag) for each, lag in _by_lag(facts) if each.state == "Empty" and lag > 0]
    if found:
        yield warning(
            "groups have unread records and no members",
            [f"{each.name}: {count_text(lag, 'record')}" for each, lag in found],
            f"Start the consumers, or remove a group that is not used: odradek group delete {found[0][0].name}",
        )


def unstable(facts: ClusterFacts) -> Iterator[Finding]:
    """Groups that are rebalancing in both samples, and groups that are dead."""
    assert facts.groups is not None
    moving = [each for each in facts.groups if each.state in REBALANCING and each.later_state in REBALANCING]
    if moving:
        yield warning(
            "groups were rebalancing in both samples: their members read nothing while they do",
            [f"{each.name}: {each.state}, then {each.later_state}" for each in moving],
            f"Look for members that leave or exceed max.poll.interval.ms: odradek group describe {moving[0].name}",
        )
    dead = [each for each in facts.groups if each.state == "Dead"]
    if dead:
        yield warning(
            "groups are dead: their coordinator removes them",
            [each.name for each in dead],
            f"If they stay, restart the consumers: odradek group describe {dead[0].name}",
        )


def _by_lag(facts: ClusterFacts) -> Sequence[tuple[GroupFacts, int]]:
    """The groups whose lag is known, with it; the largest first."""
    assert facts.groups is not None
    known = [(each, each.lag) for each in facts.groups if each.lag is not None]
    return sorted(known, key=lambda each: -each[1])
