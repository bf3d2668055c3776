"""A plan of reassignments, and running ones, as objects and as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.cli.framework.output import column_lines
from odradek.conventions.figures import count_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster_state import PartitionState
    from odradek.admin.partitions.plan import Move
    from odradek.admin.partitions.sizes import Sizes


def brokers_text(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or "-"


def move_object(move: Move) -> dict[str, Any]:
    return {
        "topic": move.partition.topic,
        "partition": move.partition.index,
        "before": list(move.before),
        "after": list(move.after),
        "bytes_to_copy": move.bytes_to_copy,
    }


def plan_lines(moves: Sequence[Move]) -> list[str]:
    rows = [
        (
            move.partition.name,
            brokers_text(move.before),
            "→",
            brokers_text(move.after),
            brokers_text(move.adding),
            brokers_text(move.removing),
            "?" if move.bytes_to_copy is None else size_text(move.bytes_to_copy) if move.adding else "-",
        )
        for move in moves
    ]
    titles = ["PARTITION", "FROM", "", "TO", "COPY TO", "REMOVE FROM", "SIZE"]
    return [*column_lines(titles, rows), "", plan_summary(moves)]


def plan_summary(moves: Sequence[Move]) -> str:
    copies = sum(len(move.adding) for move in moves)
    removed = sum(len(move.removing) for move in moves)
    leaders = sum(bool(move.before) and move.before[0] != move.after[0] for move in moves)
    known = [move.bytes_to_copy for move in moves if move.bytes_to_copy is not None]
    size = f" ({size_text(sum(known))}{' and more' if len(known) < len(moves) else ''})" if copies else ""
    parts = [
        count_text(len(moves), "partition"),
        f"{count_text(copies, 'replica')} to copy{size}",
        f"{count_text(removed, 'replica')} to remove",
        f"{count_text(leaders, 'preferred leader')} to change",
    ]
    return ", ".join(parts)


def progress_object(partition: PartitionState, sizes: Sizes) -> dict[str, Any]:
    copied, total = progress(partition, sizes)
    return {
        "topic": partition.topic,
        "partition": partition.index,
        "replicas": list(partition.replicas),
        "adding": list(partition.adding),
        "removing": list(partition.removing),
        "copied_bytes": copied,
        "total_bytes": total,
    }


def progress(partition: PartitionState, sizes: Sizes) -> tuple[int | None, int | None]:
    """Bytes on the new replicas, and bytes that they shall have; None if it is not known."""
    whole = sizes.get((partition.leader, partition.topic, partition.index))
    if whole is None:
        return None, None
    copied = [sizes.get((broker, partition.topic, partition.index), 0) for broker in partition.adding]
    return sum(min(each, whole) for each in copied), whole * len(partition.adding)


def running_lines(partitions: Sequence[PartitionState], sizes: Sizes) -> list[str]:
    rows = []
    for partition in partitions:
        copied, total = progress(partition, sizes)
        known = copied is not None and total is not None
        rows.append(
            (
                partition.name,
                brokers_text(partition.target),
                brokers_text(partition.adding),
                brokers_text(partition.removing),
                f"{size_text(copied or 0)} of {size_text(total or 0)}" if known else "?",
            )
        )
    return column_lines(["PARTITION", "TO", "ADDING", "REMOVING", "COPIED"], rows)
