"""Dead letters are recognised by their first headers, and the others belong to the original record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.letters.letter import WITH_ORIGIN, WITHOUT_ORIGIN, parse_letter

OWN = st.lists(
    st.tuples(st.one_of(st.sampled_from(WITH_ORIGIN), st.text(max_size=5)), st.none() | st.binary(max_size=5))
)


@given(OWN, st.binary(max_size=9))
def test_the_headers_of_the_original_record_are_kept_as_they_were(
    own: list[tuple[str, bytes | None]], reason: bytes
) -> None:
    origin = [(name, name.encode()) for name in WITH_ORIGIN]
    origin[0] = (origin[0][0], reason)
    letter = parse_letter([*origin, *own])
    assert letter is not None
    assert letter.headers == tuple(own)
    assert letter.source_topic == "odradek-source-topic"
    assert letter.can_be_redriven


def test_a_row_without_an_origin_record_cannot_be_written_back() -> None:
    letter = parse_letter([(name, b"x: y") for name in WITHOUT_ORIGIN])
    assert letter is not None
    assert not letter.can_be_redriven
    assert letter.kind == "x"


@given(OWN)
def test_other_records_are_not_dead_letters(own: list[tuple[str, bytes | None]]) -> None:
    names = tuple(name for name, _value in own)
    if names[:6] != WITH_ORIGIN and names[:4] != WITHOUT_ORIGIN:
        assert parse_letter(own) is None
