"""`odradek log`: look into the files of a broker, Odradek's or Apache Kafka's; both have the same formats."""

from __future__ import annotations

from odradek.cli.commands import group


@group(
    lazy={"dump": ("odradek.cli.log_dump:dump", "Show segments, indexes, snapshots and checkpoints.")},
    examples=[("what a partition holds", "odradek log dump data/pump-0")],
)
def log() -> None:
    """Look into a broker's files. Works on Apache Kafka's files too: the formats are the same."""
