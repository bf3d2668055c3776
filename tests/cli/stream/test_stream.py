"""`odradek stream`, on a real broker: MapR's documented flow, in its words and in ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from odradek.testing import RunningBroker, broker

if TYPE_CHECKING:
    from tests.commands import Run

PATH = "/plant/pumps"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningBroker]:
    with broker() as running:
        yield running


@pytest.fixture(autouse=True)
def address(server: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", server.bootstrap_servers)


def test_the_documented_flow(odradek: Run) -> None:
    created = odradek("stream", "create", "-path", PATH, "-ttl", "86400", "-defaultpartitions", "2", "-json")
    assert created.row["status"] == "OK"
    assert (created.row["total"], created.row["data"]) == (1, [{"path": PATH, "created": True}])
    assert odradek("stream", "topic", "create", "-path", PATH, "-topic", "warning").output == (
        f"created topic {PATH}:warning\n"
    )
    assert odradek("produce", f"{PATH}:warning", "--value", "hot").code == 0
    assert odradek("consume", f"{PATH}:warning", "-g", "shift", "--until-end").output == "hot\n"
    cursors = odradek("stream", "cursor", "list", "-path", PATH, "-json").row["data"]
    assert [(each["group"], each["topic"], each["offset"]) for each in cursors] == [("shift", f"{PATH}:warning", 1)]
    assert (
        odradek("stream", "edit", "-path", PATH, "-ttl", "0", "-timestamptype", "logappendtime").output
        == f"changed stream {PATH}\n"
    )
    described = odradek("stream", "describe", PATH, "--format", "json").row
    assert described["settings"] == {"retention.ms": "-1", "message.timestamp.type": "LogAppendTime"}
    assert (described["topics"], described["partitions"], described["default_partitions"]) == (1, 2, 2)
    assert odradek("stream", "purge", PATH, "--yes").output == f"deleted all records of 1 topic in {PATH}\n"
    assert odradek("consume", f"{PATH}:warning", "--from-beginning", "--until-end").output == ""
    assert odradek("stream", "cursor", "delete", PATH, "--group", "shift", "--yes").code == 0
    assert odradek("stream", "cursor", "list", PATH).output == "no cursors\n"
    assert odradek("stream", "delete", PATH, "--yes").output == f"deleted stream {PATH}\n"
    assert PATH not in odradek("stream", "list").output


def test_a_stream_is_shown_with_what_its_values_mean(odradek: Run) -> None:
    odradek(
        "stream", "create", "/shown", "--ttl", "7d", "--consume-perm", "p", "--copy-perm", "", "--compression", "zlib"
    )
    output = odradek("stream", "describe", "/shown").output
    for line in (
        "/shown  0 topics · 0 partitions · owner ANONYMOUS",
        "retention.ms      604800000  7 d",
        "compression.type  gzip",
        "consume     p",
        "copy        nobody",
    ):
        assert line in output
    rows = odradek("stream", "list", "--format", "json").rows
    assert "/shown" in [each["path"] for each in rows]


def test_topics_are_listed_grown_and_deleted(odradek: Run) -> None:
    odradek("stream", "create", "/grown")
    for name in ("b", "a"):
        odradek("stream", "topic", "create", "/grown", "--topic", name)
    assert odradek("stream", "topic", "edit", "/grown", "--topic", "a", "-p", "3").output == (
        "topic /grown:a has 3 partitions\n"
    )
    rows = odradek("stream", "topic", "list", "/grown", "--format", "json").rows
    assert rows == [{"topic": "/grown:a", "partitions": 3}, {"topic": "/grown:b", "partitions": 1}]
    assert odradek("stream", "topic", "delete", "/grown", "--topic", "a", "--yes").code == 0
    assert odradek("stream", "topic", "delete", "/grown", "--topic", "b", "--yes").code == 0
    assert odradek("stream", "topic", "list", "/grown").output.startswith("no topics")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("describe", "/none"), 1, "there is no stream /none;"),
        (("edit", "/none", "--ttl", "1"), 1, "there is no stream /none;"),
        (("edit", "/none"), 2, "say what to change"),
        (("create", "/a.b"), 1, "is not made of '/' and names"),
        (("create", "/x", "--config", "retention.mss=1"), 1, "did you mean retention.ms"),
        (("create", "/x", "--admin-perm", "u:a &"), 1, "expected u:, g: or r: with a name"),
        (("topic", "create", "/none", "--topic", "a"), 1, "there is no stream '/none'"),
        (("delete", "/none", "--yes"), 1, "there is no stream /none;"),
    ],
)
def test_a_failure_says_what_and_why(odradek: Run, arguments: tuple[str, ...], code: int, words: str) -> None:
    ran = odradek("stream", *arguments)
    assert (ran.code, ran.output) == (code, "")
    assert words in ran.errors
