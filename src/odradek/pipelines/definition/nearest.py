"""Suggestions for misspelled names."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_NAMES_LISTED = 12


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most similar to an unknown one, or None if none is similar."""
    by_folded = {each.lower(): each for each in known}
    found = difflib.get_close_matches(word.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def suggestion(word: str, known: Iterable[str], *, what: str = "known") -> str:
    """`did you mean 'topic'?`, or a list of the known words."""
    names = list(known)
    close = nearest(word, names)
    if close is not None:
        return f"did you mean '{close}'?"
    if not names:
        return ""
    shown = ", ".join(names[:MOST_NAMES_LISTED]) + (", …" if len(names) > MOST_NAMES_LISTED else "")
    return f"{what}: {shown}"
