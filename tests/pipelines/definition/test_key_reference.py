"""docs/keys.md is made of the declared keys, and current."""

from __future__ import annotations

from pathlib import Path

from odradek.pipelines.definition.keys import PIPELINE, Key, Kind
from tests.pipelines.definition.key_reference import reference

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "keys.md"


def test_the_page_is_current() -> None:
    """Write it anew by `python -m tests.pipelines.definition.key_reference > docs/keys.md`."""
    assert DOCUMENT.read_text() == reference()


def test_every_key_is_described_and_belongs_to_keys_beside_it() -> None:
    def check(key: Key) -> None:
        assert set(key.one_of) <= set(key.names), key.name
        for each in key.keys:
            assert each.text.endswith("."), each.name
            assert set(each.owners) <= set(key.names), each.name
            assert bool(each.words) or each.kind is not Kind.WORD, each.name
            check(each)

    check(PIPELINE)


def test_keys_of_one_name_have_different_owners() -> None:
    def check(key: Key) -> None:
        for name in key.names:
            owners = [owner for each in key.keys if each.name == name for owner in each.owners or ("",)]
            assert len(owners) == len(set(owners)), name
        for each in key.keys:
            check(each)

    check(PIPELINE)
