"""Apache Kafka's own dump tool reads transaction indexes, markers and snapshots with open transactions."""

import re
from pathlib import Path

import pytest

from odradek.host.host import real_host
from odradek.log.log_config import LogConfig
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from tests.jvm.tools import ToolSession
from tests.log.batches import EVERYTHING, append, open_log
from tests.log.compaction.compacted_logs import keyed_batch

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(120)]


def test_the_dump_tool_reads_our_transaction_files(jvm: None, tmp_path: Path) -> None:
    host = real_host()
    log = open_log(host, str(tmp_path / "t-0"), LogConfig(message_timestamp_after_max_ms=EVERYTHING))
    now_ms = host.clock.now_ms()
    for producer_id in (1, 2):
        producer = (producer_id, 0, 0)
        append(log, keyed_batch([(b"k", b"v")] * 2, producer=producer, is_transactional=True, timestamp=now_ms))
    log.append_marker(EndTransactionMarker(1, 1, ControlRecordType.ABORT, 5), 0, transaction_version=2)
    log.roll()
    log.close()
    host.workers.close()
    stem = tmp_path / "t-0" / f"{0:020d}"
    with ToolSession() as tools:
        files = [stem.with_suffix(".txnindex"), stem.with_suffix(".log")]
        indexes, batches = (tools.run("kafka-dump-log", "--files", str(file)).checked() for file in files)
        snapshot = tmp_path / "t-0" / f"{5:020d}.snapshot"
        producers = tools.run("kafka-dump-log", "--files", str(snapshot)).checked()
    assert "version: 0 producerId: 1 firstOffset: 0 lastOffset: 4 lastStableOffset: 2" in indexes
    assert re.search(r"baseOffset: 4 .* isTransactional: true isControl: true .* isvalid: true", batches)
    assert re.search(r"producerId: 1 producerEpoch: 1 coordinatorEpoch: 5 .*Offset: OptionalLong.empty", producers)
    assert re.search(r"producerId: 2 producerEpoch: 0 .*Offset: OptionalLong\[2\]", producers)
