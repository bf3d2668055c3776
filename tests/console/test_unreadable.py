"""Records that cannot be read, or not be shown, stop no page: the others are there, and the notice names them."""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from typing import TYPE_CHECKING

import pytest

from odradek.admin.letters import Selection
from odradek.console.pages.pipelines import _planned
from odradek.console.views.figures import FormError
from odradek.testing import broker
from tests.console.conftest import Visitor, running_console
from tests.protocol.malformed_batches import batch, hostile_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing import RunningBroker

HANGING = batch(b"x", 1, attributes=1)  # the client library spins on it


def append(running: RunningBroker, topic: str, batches: list[bytes]) -> None:
    """As batches that a broker without a check has accepted."""
    running.stop()
    path = os.path.join(running.data_directory, f"{topic}-0", f"{0:020}.log")
    with open(path, "ab") as file:
        file.writelines(
            struct.pack(">qii", offset, len(each) - 12, 0) + each[16:] for offset, each in enumerate(batches)
        )
    running.start()


@pytest.fixture(scope="module")
def poisoned() -> Iterator[RunningBroker]:
    """Offset 0 cannot be read, 1 has a header name that is not UTF-8, 2 is too large to show, 3 is fine."""
    hostile = dict(hostile_batches())
    with broker({"num.partitions": 1, "message.max.bytes": 10_000_000}) as running:
        from odradek.admin.cluster import Cluster

        assert Cluster(running.bootstrap_servers, {}).create_topic("poisoned", 1)
        append(running, "poisoned", [HANGING, hostile["header name not UTF-8, NONE"], hostile["bomb of 64 MiB, ZSTD"]])
        producer = Cluster(running.bootstrap_servers, {}).producer({})
        producer.produce("poisoned", b"fine")
        assert producer.flush(60) == 0
        yield running


@pytest.fixture
def visitor(poisoned: RunningBroker) -> Iterator[Visitor]:
    with running_console(poisoned.bootstrap_servers) as address:
        yield Visitor(address)


def test_pages_name_what_they_do_not_show(visitor: Visitor) -> None:
    for query in ("", "start=oldest", "start=offset&at=0&partition=0"):
        page = visitor.get(f"/topics/poisoned?{query}")
        assert (page.status, "fine" in page.text) == (200, True), query
        assert "poisoned-0, offset 0: compressed records are corrupt" in page.text
        assert "poisoned-0, offset 2: too large to show: decompressed records exceed the limit of 33554432" in page.text
    record = visitor.get("/topics/poisoned/record?partition=0&offset=1")
    assert (record.status, "\\xc3(\\xff" in record.text) == (200, True)
    record = visitor.get("/topics/poisoned/record?partition=0&offset=0")
    assert (record.status, "compressed records are corrupt" in record.text) == (502, True)


@pytest.mark.parametrize("start", ["newest", "oldest"])
def test_an_export_ends_with_what_it_lacks(visitor: Visitor, start: str) -> None:
    lines = [json.loads(line) for line in visitor.get(f"/topics/poisoned/export?start={start}").body.splitlines()]
    assert [each["offset"] for each in lines[:-1]] == [1, 3]
    assert lines[0]["headers"] == [{"key": "\\xc3(\\xff", "value": "v"}]
    assert "poisoned-0, offset 0" in lines[-1]["incomplete"]


def test_a_search_reads_the_rest(visitor: Visitor) -> None:
    found = visitor.get("/topics/poisoned/search?start=oldest&field=value&comparison=contains&text=fine").text
    assert '"matched": 1' in found or '"matched":1' in found
    assert "offset 2: too large to show" in found


def test_readers_of_a_batch_that_cannot_be_read_hold_up_no_other_page(visitor: Visitor) -> None:
    """Twice as many as the console has threads for."""
    began_at = time.monotonic()
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(visitor.get("/topics/poisoned").status)) for _ in range(32)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert statuses == [200] * len(threads)
    assert visitor.get("/brokers").status == 200
    assert time.monotonic() - began_at < 30


def test_a_name_with_a_nul_character_is_refused(visitor: Visitor) -> None:
    for path in ("/topics/%00", "/topics/a%00", "/group?name=%00", "/dead-letters?topic=%00"):
        answer = visitor.get(path)
        assert (answer.status, "NUL character" in answer.text) == (400, True), path
    answer = visitor.get("/topics/unknown")
    assert (answer.status, "There is no topic unknown" in answer.text) == (404, True)


@pytest.mark.parametrize(
    "bounds",
    ["", "[]", "{}", '{"count": Infinity, "ends": {}}', '{"count": 1, "ends": {"0": 1e999}}',
     '{"count": 1, "ends": []}', '{"count": 1, "records": 7}', '{"count": 1, "records": ["0:x"]}', "[" * 100_000],
)  # fmt: skip
def test_the_bounds_of_a_redrive_are_refused_unless_a_preview_made_them(bounds: str) -> None:
    with pytest.raises(FormError):
        _planned(Selection("letters"), bounds)
