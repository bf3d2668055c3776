"""The parts of the experiments at scale that need no broker."""

from pathlib import Path

from bench.cold_reads import evict_pages
from bench.dirty_logs import clean_offset
from bench.discarding_consumer import offset_after
from odradek.log.checkpoints import encode_checkpoint
from tests.clients.wire.batches import Batch


def test_clean_offset_is_read_from_the_brokers_checkpoint(tmp_path: Path) -> None:
    assert clean_offset(tmp_path, "bench-1") == 0, "no checkpoint was written"
    (tmp_path / "data").mkdir()
    text = encode_checkpoint({("bench-10", 0): 7, ("bench-1", 0): 5})
    (tmp_path / "data" / "cleaner-offset-checkpoint").write_bytes(text)
    assert (clean_offset(tmp_path, "bench-1"), clean_offset(tmp_path, "bench-2")) == (5, 0)


def test_pages_of_a_topic_are_evicted_and_its_files_stay_unchanged(tmp_path: Path) -> None:
    (tmp_path / "bench-1-0").mkdir()
    file = tmp_path / "bench-1-0" / "0.log"
    file.write_bytes(b"records")
    evict_pages(tmp_path, "bench-1")
    assert file.read_bytes() == b"records"


def test_next_offset_follows_the_last_whole_batch() -> None:
    first = Batch(base_offset=7, values=[b"a", b"b", b"c"]).encode()
    second = Batch(base_offset=10, values=[b"d"]).encode()
    assert offset_after(first + second, 7) == 11
    assert offset_after(first + second[:-1], 7) == 10
    assert offset_after(first[:-1], 7) == offset_after(b"", 7) == 7
