"""A document as a script: the files that it has its readers write, the commands, and the output that it shows.

In a block `console` a line with `$` is a command and the lines below it are its output. A block of another language whose
first line is a comment with a file's name (`# shop.yml`) is the content of that file, with `, continued` more of it, and in a
block `diff` lines of it to replace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"(?:#|//) ([\w./-]+\.\w+)(, continued)?\n")
_VARIES = (
    (re.compile(r"\b\d+(\.\d+)? (ms|s|minutes?)\b"), "N s"),
    (re.compile(r"\b\d{2}:\d{2}:\d{2}(?!Z)\b"), "TIME"),
)
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
    for language, block in _BLOCK.findall(text):
        file = _FILE.match(block)
        if language == "console":
            found += _commands(block)
        elif file is not None and language == "diff":
            found.append(_change(file[1], block[file.end() :]))
        elif file is not None:
            found.append(Writing(file[1], block[file.end() :], file[2] is not None))
    return found


def _commands(block: str) -> list[Command]:
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [Command(lines[0], tuple(lines[1:])) for lines in (part.splitlines() for part in parts)]


def _change(name: str, block: str) -> Change:
    lines = block.splitlines(keepends=True)
    old, new = ("".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
    return Change(name, old, new)


def shows(expected: tuple[str, ...], output: str) -> bool:
    """Whether the output has the expected lines, apart from what varies: durations, times, and `…` for anything."""
    pattern = "".join(_line_pattern(line.rstrip()) for line in expected)
    found = "".join(f"{_masked(line.rstrip())}\n" for line in output.strip().splitlines())
    return re.fullmatch(pattern, found) is not None


def _line_pattern(line: str) -> str:
    if line == ANYTHING:
        return r"(?:.*\n)*"
    return ".*".join(re.escape(part) for part in _masked(line).split(ANYTHING)) + r"\n"


def _masked(line: str) -> str:
    for pattern, mask in _VARIES:
        line = pattern.sub(mask, line)
    return line
