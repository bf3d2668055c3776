"""What tables, views and topics have of the rows of a step: the latest rows, change data, tombstones."""

from __future__ import annotations

from typing import Any


def latest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The row of each `k` with the greatest `at`."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        if row["k"] not in found or found[row["k"]]["at"] < row["at"]:
            found[row["k"]] = row
    return list(found.values())


def last_arrived(rows: list[dict[str, Any]], key: tuple[str, ...]) -> list[dict[str, Any]]:
    """The row of each key whose record arrived last; of the rows of one record the last."""
    ordered = sorted(rows, key=lambda row: row["_arrival"])
    return list({tuple(row[name] for name in key): row for row in ordered}.values())


def greatest(rows: list[dict[str, Any]], key: tuple[str, ...], order: str) -> list[dict[str, Any]]:
    """The row of each key with the greatest value of a column; of the groups of a key, each has another value."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        present = found.setdefault(tuple(row[name] for name in key), row)
        if present is not row and present[order] < row[order]:
            found[tuple(row[name] for name in key)] = row
    return list(found.values())


def changed(rows: list[dict[str, Any]], *, has_history: bool) -> list[dict[str, Any]]:
    """Change data: the order of the changes of a `k` is `at`, and a negative `n` deletes."""
    changes = {(row["k"], row["at"]): row for row in rows}
    made = []
    for key in {row["k"] for row in rows}:
        ordered = [changes[each] for each in sorted(each for each in changes if each[0] == key)]
        for row, after in zip(ordered, [*ordered[1:], None], strict=True):
            if row["n"] is not None and row["n"] < 0:
                continue
            if has_history:
                ends_at = None if after is None else after["at"]
                made.append({**row, "valid_from": row["at"], "valid_to": ends_at, "is_current": after is None})
            elif after is None:
                made.append(row)
    return made


def with_tombstones(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records of a topic: a row with a negative `n` is written as a record without a value."""
    return [{"deleted": str(row["id"])} if row["n"] is not None and row["n"] < 0 else row for row in rows]
