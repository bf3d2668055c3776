"""What options take and refuse, before any client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.framework.parameter_types import (
    BYTES,
    HEADER,
    OFFSET,
    PAIR,
    PARTITION,
    POSITIVE,
    TEXT,
    TOPIC_NAME,
    argument_bytes,
    quoted,
)

if TYPE_CHECKING:
    from tests.commands import Run

NOT_UTF8 = b"\xff".decode(errors="surrogateescape")


@given(st.binary())
def test_the_bytes_of_an_argument_come_back(data: bytes) -> None:
    assert argument_bytes(data.decode(errors="surrogateescape")) == data


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (PARTITION, "2147483647", 2**31 - 1),
        (OFFSET, "9223372036854775807", 2**63 - 1),
        (POSITIVE, "0.5", 0.5),
        (BYTES, NOT_UTF8, b"\xff"),
        (PAIR, "a=b=c", ("a", "b=c")),
        (HEADER, f"a={NOT_UTF8}", ("a", b"\xff")),
        (TOPIC_NAME, "pump", "pump"),
    ],
)
def test_what_is_taken(kind: click.ParamType, text: str, value: object) -> None:  # type: ignore[type-arg, unused-ignore]  # generic in the newest click
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        (PARTITION, "2147483648", "not between 0 and 2147483647"),
        (PARTITION, "-1", "not between"),
        (PARTITION, "x", "'x' is not a number"),
        (OFFSET, "9" * 5000, "is not a number"),
        (POSITIVE, "0", "not a number above zero"),
        (POSITIVE, "nan", "not a number above zero"),
        (POSITIVE, "inf", "not a number above zero"),
        (TEXT, NOT_UTF8, r"'\xff' is not UTF-8"),
        (TOPIC_NAME, "", "cannot be empty"),
        (TOPIC_NAME, NOT_UTF8, "is not UTF-8"),
        (PAIR, "=x", "'=x' is not key=value"),
        (PAIR, f"a={NOT_UTF8}", "is not UTF-8"),
        (HEADER, f"{NOT_UTF8}=a", "is not UTF-8"),
    ],
)
def test_what_is_refused(kind: click.ParamType, text: str, complaint: str) -> None:  # type: ignore[type-arg, unused-ignore]
    with pytest.raises(click.BadParameter) as refused:
        kind.convert(text, None, None)
    assert complaint in refused.value.message


def test_a_long_argument_is_named_in_short() -> None:
    assert len(quoted("9" * 5000)) < 70


@pytest.mark.parametrize(
    "arguments",
    [
        ("topic", "describe", ""),
        ("topic", "describe", NOT_UTF8),
        ("topic", "create", "a", "-p", "99999999999"),
        ("topic", "create", "a", "-r", "99999999999"),
        ("topic", "create", "a", "-c", f"a={NOT_UTF8}"),
        ("topic", "alter", "a", "-p", "99999999999"),
        ("topic", "alter", "a", "-d", ""),
        ("topic", "delete", NOT_UTF8, "--yes"),
        ("topic", "list", "-b", NOT_UTF8),
        ("produce", "a", "-p", "99999999999", "-v", "v"),
        ("produce", "a", "-T", "99999999999999999999", "-v", "v"),
        ("produce", "a", "-T", "1900-01-01", "-v", "v"),
        ("produce", "a", "-H", f"{NOT_UTF8}=1", "-v", "v"),
        ("produce", "", "-v", "v"),
        ("consume", "a", "--from-time", "99999999999999999999"),
        ("consume", "a", "--timeout", "999999999999999w"),
        ("consume", "a", "--timeout", "9" * 400 + "w"),
        ("consume", "a", "--offset", "99999999999999999999"),
        ("consume", NOT_UTF8),
        ("bench", "produce", "--rate", "nan"),
        ("bench", "produce", "--size", "99999999999"),
        ("bench", "latency", "--rate", "inf"),
        ("demo", "--seconds", "nan"),
        ("group", "describe", NOT_UTF8),
        ("group", "delete", NOT_UTF8, "--yes"),
        ("group", "reset", "g", "--topic", "", "--to-latest"),
        ("group", "reset", "g", "--to-offset", "99999999999999999999"),
    ],
    ids=lambda arguments: ascii(" ".join(arguments))[:60],
)
def test_bad_input_is_wrong_usage_and_no_bug(offline: Run, arguments: tuple[str, ...]) -> None:
    ran = offline(*arguments)
    assert (ran.code, ran.output) == (2, "")
    assert "a bug in odradek" not in ran.errors
    assert "Invalid value for" in ran.errors
    assert ran.errors.count("\n") == 1
