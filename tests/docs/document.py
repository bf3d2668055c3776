"""A document as a script: the files that it has its readers write, the commands, and the output that it shows.

In a block `console` a line with `$` is a command and the lines below it are its output. A block below a paragraph that
ends with the name of a file and a colon is the content of that file, below "Add to" more of it, and in a block `diff`
lines of it to replace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"(Add\sto\s)?`([\w./-]+\.\w+)`:\n\n$")
_VARIES = ((re.compile(r"\b\d+(\.\d+)? (ms|s)\b"), "N s"), (re.compile(r"\bSpark [\d.]+ on local\[\d+\]"), "Spark"))
_BATCH = re.compile(r" batch \d+: ")
ANYTHING = "…"


@dataclass(frozen=True)
class Writing:
    """A file to be written, or to be extended."""

    name: str
    text: str
    is_continued: bool = False

    def write(self, folder: Path) -> None:
        with (folder / self.name).open("a" if self.is_continued else "w") as file:
            file.write(self.text)


@dataclass(frozen=True)
class Change:
    """Lines of a file to be replaced by others."""

    name: str
    old: str
    new: str

    def write(self, folder: Path) -> None:
        path = folder / self.name
        text = path.read_text()
        assert text.count(self.old) == 1, (self.name, self.old)
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True)
class Command:
    line: str
    output: tuple[str, ...]


Action = Writing | Change | Command


def actions(text: str) -> list[Action]:
    """In the order of the document."""
    found: list[Action] = []
    for match in _BLOCK.finditer(text):
        language, block = match.groups()
        file = _FILE.search(text[: match.start()])
        if language == "console":
            found += _commands(block)
        elif file is not None and language == "diff":
            found.append(_change(file[2], block))
        elif file is not None:
            found.append(Writing(file[2], block, is_continued=file[1] is not None))
    return found


def _commands(block: str) -> list[Command]:
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [Command(lines[0], tuple(lines[1:])) for lines in (part.splitlines() for part in parts)]


def _change(name: str, block: str) -> Change:
    lines = block.splitlines(keepends=True)
    old, new = ("".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
    return Change(name, old, new)


def shows(expected: Sequence[str], output: str) -> bool:
    """Whether the output has the expected lines. Blanks, durations, order of batches may differ; `…` is anything."""
    pattern = "".join(_line_pattern(line) for line in _batches_in_order(expected))
    found = "".join(f"{_masked(line)}\n" for line in _batches_in_order(output.strip().splitlines()))
    return re.fullmatch(pattern, found) is not None


def _batches_in_order(lines: Sequence[str]) -> list[str]:
    """Flows run side by side: any of them may report its batch first."""
    batches = iter(sorted(line for line in lines if _BATCH.search(line)))
    return [next(batches) if _BATCH.search(line) else line for line in lines]


def _line_pattern(line: str) -> str:
    if line == ANYTHING:
        return r"(?:.*\n)*"
    return ".*".join(re.escape(part) for part in _masked(line).split(ANYTHING)) + r"\n"


def _masked(line: str) -> str:
    for pattern, mask in _VARIES:
        line = pattern.sub(mask, line)
    return " ".join(line.split())
