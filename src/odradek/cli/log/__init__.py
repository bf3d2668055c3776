"""`odradek log`: show, check and repair the files of a broker, Odradek's or Apache Kafka's (the formats are equal)."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    ("the segments of a partition", "odradek log dump data/pump-0"),
    ("check all partitions", "odradek log verify data"),
    lazy={
        "dump": ("odradek.cli.log.dump:dump", "Show segments, indexes, snapshots and checkpoints."),
        "verify": ("odradek.cli.log.verify:verify", "Check files for damage; changes nothing."),
        "repair": ("odradek.cli.log.verify:repair", "Repair damaged files; removed bytes are kept."),
    },
)
def log() -> None:
    """Show, check and repair the files of a broker, Odradek's or Apache Kafka's."""
