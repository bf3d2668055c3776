"""Shell completion: the scripts, and what they complete."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(offline: Run, shell: str) -> None:
    ran = offline("completion", shell)
    assert (ran.code, ran.errors) == (0, "")
    assert f"_ODRADEK_COMPLETE={shell}_complete" in ran.output
    assert offline("completion", shell, "--format", "json").row == {
        "shell": shell,
        "script": ran.output.removesuffix("\n"),
    }


def test_an_unknown_shell_is_wrong_usage(offline: Run) -> None:
    assert offline("completion", "tcsh").code == 2


def test_bash_accepts_its_script(offline: Run, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    script = tmp_path / "completion.bash"
    script.write_text(offline("completion", "bash").output)
    subprocess.run(["bash", "-n", str(script)], check=True)


def complete(run: Run, words: str) -> list[str]:
    """What bash would offer for the last word."""
    last = str(len(words.split(" ")) - 1)
    output = run(_ODRADEK_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=last).output
    return [line.partition(",")[2] for line in output.splitlines()]


def test_commands_are_completed(offline: Run) -> None:
    assert complete(offline, "odradek co") == ["consume", "config", "console", "completion"]
    assert complete(offline, "odradek topic de") == ["describe", "delete"]


def test_options_are_completed(offline: Run) -> None:
    assert complete(offline, "odradek consume --from-") == ["--from-beginning", "--from-end", "--from-time"]


def test_topics_are_completed(odradek: Run, topic: str) -> None:
    for command in ("consume", "produce", "topic describe", "topic delete", "topic alter"):
        assert complete(odradek, f"odradek {command} {topic[:-2]}") == [topic]


def test_no_broker_completes_nothing_and_says_nothing(offline: Run) -> None:
    ran = offline(_ODRADEK_COMPLETE="bash_complete", COMP_WORDS="odradek consume p", COMP_CWORD="2")
    assert (ran.output.strip(), ran.errors) == ("", "")
