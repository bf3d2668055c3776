"""`odradek topic delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.topics import choose_topics, delete_topics, has_pattern, with_similar_topics
from odradek.cli.client.options import cluster_options, topics_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import note, print_json, say
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    examples=[
        ("after a question", "odradek topic delete pump"),
        ("several, without a question", "odradek topic delete pump valve --yes"),
        ("those whose names match a pattern", "odradek topic delete 'tmp-*'"),
    ]
)
@topics_argument
@yes_option
@cluster_options
def delete(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete topics and all their records.

    A name with *, ? or [ ] is a pattern, as in a shell; quote it. Patterns match no internal topics.
    """
    chosen = choose_topics(cluster, names)
    topics = ", ".join(chosen)
    if has_pattern(names) and not yes:
        note("\n".join(chosen))
        topics = f"{'this' if len(chosen) == 1 else 'these'} {count_text(len(chosen), 'topic')}"
    confirm(f"Delete {topics} and all records?", yes)
    failures = []
    for name, failure in delete_topics(cluster, chosen).items():
        if failure is not None:
            failures.append(with_similar_topics(cluster, failure))
        elif as_json:
            print_json({"topic": name, "deleted": True})
        else:
            say(f"deleted topic {name}")
    if failures:
        raise Failure("; ".join(failure.message for failure in failures))
