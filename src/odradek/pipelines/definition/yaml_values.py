"""The values of unquoted YAML scalars."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.pipelines.definition.nodes import ScalarValue

INTEGER = re.compile(r"[-+]?[0-9]{1,40}\Z")
PREFIXED_INTEGER = re.compile(r"0(x[0-9a-fA-F]{1,40}|o[0-7]{1,40})\Z")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def resolve(text: str) -> ScalarValue:
    """The value of an unquoted scalar, by the rules of YAML 1.2's core schema."""
    if text in NOTHING:
        return None
    if text in TRUTH:
        return TRUTH[text]
    if INTEGER.match(text):
        return int(text)
    if PREFIXED_INTEGER.match(text):
        return int(text, 0)
    if FLOAT.match(text):
        return float(text)
    return text
