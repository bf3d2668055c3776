"""Every batch of the corpus is what its name says: the reader of records refuses the malformed ones and the bombs."""

import pytest

from odradek.protocol.batch import CURRENT_MAGIC, has_valid_checksum, read_batch_header
from odradek.protocol.compression import DecompressedTooLarge
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import read_records
from tests.protocol.malformed_batches import hostile_batches, malformed_batches

LIMIT_BYTES = 8 * 1024 * 1024


def read(data: bytes) -> int:
    header = read_batch_header(data)
    if header.magic != CURRENT_MAGIC or not has_valid_checksum(data, 0, header):
        raise MalformedMessage("the magic or the checksum is wrong")
    return sum(1 for _ in read_records(data, LIMIT_BYTES))


def is_refused(data: bytes) -> bool:
    try:
        read(data)
    except MalformedMessage:
        return True
    return False


def test_malformed_batches_are_refused() -> None:
    assert [name for name, data in malformed_batches(400) if not is_refused(data)] == []


def test_the_corpus_depends_on_its_seed_alone() -> None:
    assert malformed_batches(300, 1) == malformed_batches(300, 1)


def test_a_bomb_is_refused_before_it_is_decompressed() -> None:
    bombs = [data for name, data in hostile_batches() if name.startswith("bomb")]
    for data in bombs:
        with pytest.raises(DecompressedTooLarge):
            read(data)
