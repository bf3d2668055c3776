"""Transactions in a compaction: which data was aborted, and which markers have no data left. Pure; the rules are those
of Kafka's CleanedTransactionMetadata. Kafka believes the transaction indexes; a marker that contradicts them is refused
here, because compaction would keep aborted records without their marker, or drop committed ones."""

import heapq
import struct
from collections.abc import Iterable

from odradek.log.transaction_index import AbortedTransaction
from odradek.protocol.batch import BatchHeader
from odradek.protocol.control_records import ControlRecordType
from odradek.protocol.malformed import MalformedMessage

_MARKER_KEY = struct.Struct(">hh")


class TransactionTracker:
    """Is called for each batch, in the order of the log."""

    __slots__ = ("_ahead", "_committed", "_has_aborted_records", "_ongoing", "retained")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._ahead = list(aborted)
        heapq.heapify(self._ahead)
        self._ongoing: dict[int, tuple[AbortedTransaction, bool]] = {}  # and whether data of the transaction was seen
        self._has_aborted_records: set[int] = set()
        self._committed: dict[int, bool] = {}  # by producer id, whether records of the transaction were seen
        self.retained: list[AbortedTransaction] = []
        """Aborted transactions that have data left: the index of the new segment must list them."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._reach(header.last_offset)
        if not header.is_transactional:
            return False
        ongoing = self._ongoing.get(header.producer_id)
        if ongoing is None:
            self._committed[header.producer_id] = bool(header.record_count or self._committed.get(header.producer_id))
            return False
        self._ongoing[header.producer_id] = (ongoing[0], True)
        if header.record_count:
            self._has_aborted_records.add(header.producer_id)
        return True

    def is_marker_discardable(self, header: BatchHeader, key: bytes | None) -> bool:
        """Whether no data is left of the transaction that a control batch ends. `key` is the key of its record, None
        when an earlier compaction has removed the record. Raises MalformedMessage when the indexes contradict it."""
        self._reach(header.last_offset)
        if key is None:
            return True
        if len(key) < _MARKER_KEY.size:
            raise MalformedMessage(f"a marker with a key of {len(key)} bytes")
        _, kind = _MARKER_KEY.unpack_from(key)
        if kind == ControlRecordType.ABORT:
            if self._committed.get(header.producer_id):
                raise MalformedMessage(
                    f"it aborts a transaction of producer {header.producer_id} that the transaction index lacks"
                )
            self._has_aborted_records.discard(header.producer_id)
            aborted, has_data = self._ongoing.pop(header.producer_id, (None, False))
            if aborted is not None and has_data:
                self.retained.append(aborted)
                return False
            return True
        if kind == ControlRecordType.COMMIT:
            if header.producer_id in self._has_aborted_records:
                raise MalformedMessage(
                    f"it commits a transaction of producer {header.producer_id} that the transaction index lists"
                )
            return self._committed.pop(header.producer_id, None) is None
        return False

    def _reach(self, offset: int) -> None:
        while self._ahead and self._ahead[0].first_offset <= offset:
            aborted = heapq.heappop(self._ahead)
            self._ongoing.setdefault(aborted.producer_id, (aborted, False))
