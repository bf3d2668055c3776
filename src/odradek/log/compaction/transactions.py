"""Transactions in a compaction: which data was aborted, and which markers have no data left. Pure; the rules are those
of Kafka's CleanedTransactionMetadata."""

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

    __slots__ = ("_ahead", "_committed", "_ongoing", "retained")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._ahead = list(aborted)
        heapq.heapify(self._ahead)
        self._ongoing: dict[int, tuple[AbortedTransaction, bool]] = {}  # and whether data of the transaction was seen
        self._committed: set[int] = set()
        self.retained: list[AbortedTransaction] = []
        """Aborted transactions that have data left: the index of the new segment must list them."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._reach(header.last_offset)
        if not header.is_transactional:
            return False
        ongoing = self._ongoing.get(header.producer_id)
        if ongoing is None:
            self._committed.add(header.producer_id)
            return False
        self._ongoing[header.producer_id] = (ongoing[0], True)
        return True

    def is_marker_discardable(self, header: BatchHeader, key: bytes | None) -> bool:
        """Whether no data is left of the transaction that a control batch ends. `key` is the key of its record, None
        when an earlier compaction has removed the record."""
        self._reach(header.last_offset)
        if key is None:
            return True
        if len(key) < _MARKER_KEY.size:
            raise MalformedMessage(f"a marker with a key of {len(key)} bytes")
        _, kind = _MARKER_KEY.unpack_from(key)
        if kind == ControlRecordType.ABORT:
            aborted, has_data = self._ongoing.pop(header.producer_id, (None, False))
            if aborted is not None and has_data:
                self.retained.append(aborted)
                return False
            return True
        if kind == ControlRecordType.COMMIT:
            is_needed = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not is_needed
        return False

    def _reach(self, offset: int) -> None:
        while self._ahead and self._ahead[0].first_offset <= offset:
            aborted = heapq.heappop(self._ahead)
            self._ongoing.setdefault(aborted.producer_id, (aborted, False))
