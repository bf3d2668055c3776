"""Failures that a user can act on, as one line each, and suggestions for mistyped names."""

from __future__ import annotations

from collections.abc import Iterable

PROGRAM, ERROR = "odradek:", "error:"  # with which a command begins the line that reports a failure
MOST_SUGGESTIONS = 3
LEAST_SIMILARITY = 0.6
LARGEST_DIFFERENCE = 0.08  # to the most similar name


class Failure(Exception):
    """An expected failure. Its message is one line: what happened, the value concerned, and what to do."""

    exit_code = 1  # of a command that fails with it

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Terminated(KeyboardInterrupt):
    """SIGTERM ends a command as Ctrl-C does, but gives it the time to end in order: no user waits."""


def without_prefix(line: str) -> str:
    """The message of a failure that another odradek process has reported."""
    return line.removeprefix(f"{PROGRAM} {ERROR} ")


def similar_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are most like `name`, best first."""
    from difflib import SequenceMatcher, get_close_matches  # noqa: PLC0415 - only a mistyped name needs it

    close = get_close_matches(name, list(known), MOST_SUGGESTIONS, LEAST_SIMILARITY)
    rated = sorted((-SequenceMatcher(a=each, b=name).ratio(), each) for each in close)
    return [each for rating, each in rated if rating <= rated[0][0] + LARGEST_DIFFERENCE]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean retention.ms or retention.bytes?`, or nothing if no known name is similar."""
    names = similar_names(name, known)
    if not names:
        return ""
    first = ", ".join(names[:-1])
    return f"did you mean {f'{first} or {names[-1]}' if first else names[-1]}?"
