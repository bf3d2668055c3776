"""`odradek consume` on a topic of which a part cannot be read: it names the part, reads the rest, and then fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.framework.failure import Failure
from odradek.cli.records.consume import MissingRecords, led_partitions
from odradek.testing import broker
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import create_topic, produce
from tests.console.test_unreadable import HANGING, append
from tests.protocol.malformed_batches import batch, hostile_batches, malformed_batches, records

if TYPE_CHECKING:
    from tests.cli.conftest import Ran, Run


def test_unreadable_batches_are_named_and_the_others_are_read(offline: Run) -> None:
    with broker() as running:

        def odradek(*arguments: str) -> Ran:
            return offline(*arguments, ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)

        assert odradek("topic", "create", "poisoned", "--partitions", "1").code == 0
        wrong_delta = batch(records(1, first=77), 1, last_delta=0)
        named = dict(hostile_batches())["header name not UTF-8, GZIP"]
        append(running, "poisoned", [batch(records(1), 1), HANGING, named, wrong_delta])
        ran = odradek("consume", "poisoned", "-e", "-f", r"%o %h %v\n")
        assert (ran.code, ran.output) == (1, "0  value\n2 \\xc3(\\xff=v value\n")
        assert "not read: poisoned-0, offset 1: compressed records are corrupt" in ran.errors
        assert "not read: poisoned-0, offset 3: offset delta 77 after -1" in ran.errors
        assert "2 parts could not be read" in ran.errors
        assert odradek("consume", "poisoned", "-n", "1", "--from-beginning").code == 0

        ran = odradek("consume", "poisoned", "-g", "readers", "--from-beginning", "-f", r"%o\n")
        assert (ran.code, ran.output) == (1, "0\n")
        assert "`odradek group reset readers --topic poisoned:0 --to-offset 2 --execute` passes over it" in ran.errors
        assert odradek("group", "reset", "readers", "--topic", "poisoned:0", "--to-offset", "2", "--execute").code == 0
        assert odradek("consume", "poisoned", "-g", "readers", "-f", r"%o\n").output == "2\n"
        assert odradek("group", "describe", "readers").code == 0


def test_a_corpus_of_malformed_batches_ends_with_what_is_missing(offline: Run) -> None:
    """Whatever a broker stores that reads headers only, with a record after each batch."""
    with broker({"produce.validation": "header"}) as running, Connection(running.bootstrap_servers) as connection:
        assert create_topic(connection, "corpus") == "NONE"
        offsets, count = [], 0
        for _name, data in malformed_batches():
            with Connection(running.bootstrap_servers) as throttled:  # after a refusal
                count += produce(throttled, "corpus", data).error == "NONE"
            offsets.append(produce(connection, "corpus", batch(records(1), 1)).base_offset)
        assert count > 400
        ran = offline("consume", "corpus", "-e", "-f", r"%o\n", ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)
    assert (ran.code, ran.output.split()) == (1, [str(each) for each in offsets])
    assert ran.errors.count("not read: corpus-0, offset") == 20
    assert f"{count} parts could not be read; the first 20 are named" in ran.errors


def test_partitions_without_a_leader_are_named_and_not_read() -> None:
    partitions = [SimpleNamespace(id=each, leader=None if each == 1 else "somewhere") for each in range(3)]
    cluster: Any = SimpleNamespace(
        describe_topics=lambda names: [SimpleNamespace(name=each, partitions=partitions) for each in names]
    )
    missing = MissingRecords()
    assert led_partitions(cluster, ["t"], (), missing) == {"t": [0, 2]}
    with pytest.raises(Failure, match="1 part could not be read"):
        missing.check()
    with pytest.raises(Failure, match="no partition of t has a leader"):
        led_partitions(cluster, ["t"], (1,), missing)
