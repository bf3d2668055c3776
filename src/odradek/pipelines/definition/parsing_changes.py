"""`changes:` of a table or a view: change data that is applied in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.model import Changes, Sink, TableTarget

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import View

CHANGES_KEYS = ("key", "sequence", "deletes", "history", "remember")
RENAMED = {"keys": "key"}


def parse_changes(fields: Fields) -> Changes | None:
    node = fields.node("changes")
    if node is None:
        return None
    inner = Fields(node, CHANGES_KEYS, f"changes of {fields.what}", fields.problems, RENAMED)
    key = inner.words("key", required="name the key columns: key: [id]")
    sequence = inner.text("sequence", required="name the column that orders the changes of a key: sequence: lsn")
    deletes = inner.text("deletes", loose=True)
    keeps_history = inner.flag("history", default=False)
    remember = inner.duration("remember")
    if remember is not None and keeps_history:
        inner.problems.error(
            inner.key_place("remember"),
            f"{inner.what} has history: true, which keeps deletions as it keeps every change",
            "remove remember",
        )
    if remember is not None and remember.milliseconds <= 0:
        inner.wrong("remember", "longer than 0")
    if sequence is not None and sequence.lower() in map(str.lower, key):
        inner.problems.error(
            inner.place_of("sequence"), f"{inner.what} has '{sequence}' in its key", "name another column"
        )
    return None if not key or sequence is None else Changes(key, sequence, deletes, keeps_history, remember)


def refuse_beside_changes(fields: Fields) -> None:
    """Refuses other keys that decide which rows are kept."""
    for key in ("key", "order_by", "mode"):
        if key in fields:
            fields.problems.error(
                fields.key_place(key),
                f"{fields.what} has {key}, and its changes decide which rows are kept",
                f"remove {key}",
            )


def changes_of(end: Sink | View) -> Changes | None:
    """The change data of a sink or view, if it applies any."""
    if isinstance(end, Sink):
        return end.target.changes if isinstance(end.target, TableTarget) else None
    return end.content if isinstance(end.content, Changes) else None
