"""The comparison of all commands of two versions: what it runs, what it ignores, and what it finds."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.versions import Version
from tests.cli.compare_versions import COMMANDS, Line, Side, print_differences


def side(title: str, directory: str, port: int) -> Side:
    found = Side.__new__(Side)  # without a fork server
    found.version = Version(title, Path("/sources") / title / "src", "")
    found.directory, found.port, found.shown = Path(directory), port, {}
    return found


def test_every_command_line_of_the_file_can_be_read() -> None:
    texts = [each for each in COMMANDS.read_text().splitlines() if each and not each.startswith(("//", "["))]
    lines = [line for text in texts for line in Line.read(text)]
    assert len(lines) > 300
    assert all(not line.text.startswith(("*", "#")) for line in lines)
    assert any(line.is_measured and line.text.endswith("--format json") for line in lines)


def test_ports_paths_ids_and_times_are_no_differences(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = side("before", "/tmp/a", 34567), side("after", "/tmp/b", 45678)
    text = "{0.directory}/data on 127.0.0.1:{0.port} of Wx6hXBUsRYuiVrYqnvfD{1}w since 2026-01-0{1}T12:00, {1}.5 s ago"
    for each, number in ((before, 1), (after, 2)):
        each.shown["topic list"] = each._normalized(text.format(each, number), False)
        each.shown["topic"] = each._normalized(f"{number} topics", False)
    assert print_differences(before, after) == 1
    printed = capsys.readouterr().out
    assert "$ odradek topic\n" in printed
    assert "-1 topics\n+2 topics" in printed


def test_a_line_that_only_one_version_ran_is_a_difference() -> None:
    before, after = (SimpleNamespace(shown={"topic": "x"}, version=SimpleNamespace(title=name)) for name in "ab")
    assert print_differences(before, after) == 0  # type: ignore[arg-type]  # they have what it reads
    after.shown.clear()
    assert print_differences(before, after) == 1  # type: ignore[arg-type]
