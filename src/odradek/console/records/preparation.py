"""The first step after reading a record: it is decoded by the schema of its topic, then masked."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from odradek.console.records.masking import MaskRule, mask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.console.records.decoding import Decoder
    from odradek.console.records.record import Record


@dataclass(frozen=True, slots=True)
class Preparation:
    masks: tuple[MaskRule, ...] = ()
    decoders: Mapping[str, Decoder] = field(default_factory=dict)  # by topic

    def __call__(self, record: Record) -> Record:
        """A value that does not fit the schema stays as it is."""
        decoder = self.decoders.get(record.topic)
        if decoder is not None and record.value:
            with contextlib.suppress(Exception):
                record = replace(record, value=decoder(record.value))
        return mask(record, self.masks)

    def changes(self, topic: str) -> bool:
        """Whether records of the topic are shown in another form than they were written."""
        return bool(self.masks) or topic in self.decoders
