"""Patterns of topics: what they match, what is refused, how much they may cost; and RE2/J, Kafka's library, agrees."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.coordinator.groups.consumer.topic_patterns import MOST_PATTERN_BYTES, InvalidPattern, matching_names
from tests.example_counts import examples
from tests.jvm.json_session import JsonSession

NAMES = ["a", "b", "ab", "abc", "A", "a.b", "a-b", "a_b", "topic-1", "topic-22", "__consumer_offsets", "x" * 249]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("topic-.*", {"topic-1", "topic-22"}),
        ("topic", set()),  # the whole name
        ("a|abc", {"a", "abc"}),
        (r"topic-\d", {"topic-1"}),
        ("(?i)a", {"a", "A"}),
        (r"a\.b", {"a.b"}),
        (r"\Qa.b\E", {"a.b"}),
        ("^a$", {"a"}),
        ("", set()),
        ("世界", set()),
        (r"\pL\pL", {"ab"}),
        ("x{249}", {"x" * 249}),
        ("(?P<first>a)(?:b)?", {"a", "ab"}),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, expected: set[str]) -> None:
    assert matching_names(pattern, NAMES) == expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(ab(cd", "missing ): (ab(cd"),
        ("[b-a]", "invalid character class range: b-a"),
        ("*", "no argument for repetition operator: *"),
        ("(?=a)", "invalid perl operator: (?="),  # what can look around or back cannot be linear
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("a{1001}", "invalid repetition size: {1001}"),
        (r"(\pL{0,30}){0,30}", "pattern too large - compile failed"),
        ("ü" * 2049, "it has 4098 bytes, more than 4096"),
        ("\ud800", "it is not Unicode"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_with_the_reason(
    pattern: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidPattern) as refused:
        matching_names(pattern, NAMES)
    assert str(refused.value) == reason
    assert capfd.readouterr() == ("", "")


def test_what_lasts_for_years_elsewhere_takes_milliseconds() -> None:
    started = time.process_time()
    assert matching_names("(x+x+)+y", NAMES) == set()
    assert matching_names("(?:x?){200}x{200}", NAMES) == {"x" * 249}
    assert time.process_time() - started < 1


@pytest.mark.parametrize("piece", [r"\pL", r"(?i)\pL", "(", "(?:a?b?){900}", ".*", "[^a]{1000}", "|", "a"])
def test_no_pattern_takes_long_to_check(piece: str) -> None:
    pattern = piece * (MOST_PATTERN_BYTES // len(piece))
    started = time.process_time()
    with contextlib.suppress(InvalidPattern):
        matching_names(pattern, ())
    assert time.process_time() - started < 1


def test_a_broker_without_patterns_does_not_load_the_library() -> None:
    modules = "odradek.server.broker, odradek.coordinator.groups.consumer.topic_patterns"
    code = f"import sys, {modules}; sys.exit('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture(scope="module")
def kafka(jvm: None) -> Iterator[JsonSession]:
    with JsonSession("odradek.PatternSession") as session:
        yield session


ATOMS = st.sampled_from(
    ["a", "b", "c", "x", "-", "_", "1", ".", r"\.", r"\d", r"\w", r"\W", r"\s", r"\pL", r"\PL", r"\p{Greek}",
     r"\x61", r"\x{4e00}", "[a-c]", "[^a]", "[[:alpha:]]", "[[:nope:]]", r"[\d.]", "[b-a]", "^", "$",
     r"\A", r"\z", r"\Z", r"\b", r"\Qa.\E", "(?i)", "(?s)", "(?=a)", r"\1", "}", "]", "[", "(", ")", "ü", "\\_"]
)  # fmt: skip
REPEATS = st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,3}", "{2,}", "{,2}", "{3,1}", "{1001}", "**"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=4).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map("|".join)
        | inner.map("({})".format)
        | inner.map("(?:{})".format)
        | st.tuples(inner, REPEATS).map("".join)
    ),
    max_leaves=8,
)
NAMED = PATTERNS.map("(?P<name>{})".format)  # once: RE2 lets a name stand for two groups, RE2/J does not


@pytest.mark.more
@pytest.mark.jvm
@pytest.mark.timeout(600)
@settings(max_examples=examples(300), deadline=None)
@given(pattern=PATTERNS | NAMED)
def test_kafkas_library_agrees(kafka: JsonSession, pattern: str) -> None:
    answer = kafka.call({"pattern": pattern, "names": NAMES})
    if "invalid" in answer:
        with pytest.raises(InvalidPattern):
            matching_names(pattern, NAMES)
    else:
        assert matching_names(pattern, NAMES) == set(answer["names"])
