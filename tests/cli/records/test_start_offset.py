"""The values of `consume --offset`."""

from __future__ import annotations

import click
import pytest

from odradek.admin.records.consume_range import Start
from odradek.cli.records.consume import StartOffsetType


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Start(from_beginning=True)),
        ("beginning", Start(from_beginning=True)),
        ("latest", Start()),
        ("end", Start()),
        ("0", Start(offset=0)),
        ("17", Start(offset=17)),
        ("-5", Start(last=5)),
        (str(2**63 - 1), Start(offset=2**63 - 1)),
    ],
)
def test_names_numbers_and_distances_from_the_end(text: str, start: Start) -> None:
    assert StartOffsetType().convert(text, None, None) == start


@pytest.mark.parametrize("text", ["", "-", "--5", "middle", "1.5", "٣", str(2**63), "9" * 50])
def test_anything_else_is_wrong_usage(text: str) -> None:
    with pytest.raises(click.BadParameter):
        StartOffsetType().convert(text, None, None)
