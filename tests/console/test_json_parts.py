"""JSON that a page colours: nothing is lost, added or taken for markup."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from odradek.console.records.json_path import indent_json
from odradek.console.views.records import LONGEST_TEXT, json_parts

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def count_names(document: object) -> int:
    if isinstance(document, dict):
        return len(document) + sum(map(count_names, document.values()))
    return sum(map(count_names, document)) if isinstance(document, list) else 0


@given(DOCUMENTS)
def test_parts_are_the_text_and_every_name_is_one(document: object) -> None:
    text = indent_json(document, LONGEST_TEXT)
    parts = json_parts(text)
    assert "".join(part.text for part in parts) == text
    names = [json.loads(part.text) for part in parts if part.kind == "name"]
    assert all(isinstance(name, str) for name in names)
    assert len(names) == count_names(document)
    assert not any(part.text.strip(' \n{}[],:"') for part in parts if not part.kind)


def test_a_long_document_is_one_part() -> None:
    text = json.dumps(["x"] * LONGEST_TEXT)
    assert json_parts(text) == [("", text)]
