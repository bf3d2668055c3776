"""`odradek group reset` when the brokers refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pytest

from odradek.admin import resets
from odradek.admin.errors import NoSuchGroup, NotAuthorized
from odradek.admin.resets import Move
from odradek.cli.main import run
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Callable


KEY = ("pump", 0)


def raising(failure: Failure) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise failure

    return refuse


class Ran(NamedTuple):
    exit_code: int
    stdout: str
    errors: str


@pytest.fixture
def reset(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """The command on a new group and a partition with 10 records, where nothing is sent."""
    parts: dict[str, Callable[..., Any]] = {
        "read_group": raising(NoSuchGroup("there is no group")),
        "choose_partitions": lambda *_: [KEY],
        "read_bounds": lambda *_: {KEY: (0, 10)},
        "alter": lambda *_: None,
    }

    def run_reset(*options: str, **changes: Callable[..., Any]) -> Ran:
        for name, part in {**parts, **changes}.items():
            monkeypatch.setattr(resets, name, part)
        code = run(["group", "reset", "billing", "--topic", "pump", "--to-latest", "--execute", *options])
        return Ran(code, *capsys.readouterr())

    return run_reset


def test_json_says_executed_after_the_offsets_were_set(reset: Callable[..., Ran]) -> None:
    assert '"executed":true' in reset("--format", "json").stdout.replace(" ", "")
    refused = reset("--format", "json", alter=raising(Failure("group billing: the group has active members")))
    assert (refused.exit_code, refused.stdout) == (1, "")


def test_offsets_that_were_committed_after_the_preview_are_not_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resets, "committed_offsets", lambda *_arguments, **_options: {KEY: 7})
    cluster: Any = None  # nothing is sent
    with pytest.raises(Failure, match="committed other offsets since the preview"):
        resets.alter(cluster, "billing", [Move("pump", 0, before=5, asked=0, after=0)])


def test_only_a_group_that_does_not_exist_is_new(reset: Callable[..., Ran]) -> None:
    assert reset().exit_code == 0
    for failure in (NotAuthorized("not authorized for the group"), Failure("the broker did not answer in time")):
        refused = reset(read_group=raising(failure))
        assert (refused.exit_code, refused.stdout, failure.message in refused.errors) == (1, "", True)
