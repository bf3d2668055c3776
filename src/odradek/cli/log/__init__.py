"""`odradek log`: look into the files of a broker, Odradek's or Apache Kafka's; both have the same formats."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "dump": ("odradek.cli.log.dump:dump", "Show segments, indexes, snapshots and checkpoints."),
        "verify": ("odradek.cli.log.verify:verify", "Check that the files are whole; nothing is changed."),
        "repair": ("odradek.cli.log.repair:repair", "Make damaged files usable again, without losing a byte."),
    },
    examples=[
        ("what a partition holds", "odradek log dump data/pump-0"),
        ("is anything damaged?", "odradek log verify data"),
    ],
)
def log() -> None:
    """Look into a broker's files, check and repair them. Apache Kafka's too: the formats are the same."""
