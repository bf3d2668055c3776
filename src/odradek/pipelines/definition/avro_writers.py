"""Writers' schemas of Avro records by the id in Confluent's wire format: a zero byte, and the id in four bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER_BYTES = 5
MAGIC = b"\0"


class UnknownSchema(LookupError):
    """There is no schema of this id; the message says what to do."""


class WriterSchemas(Protocol):
    """Where the schemas of ids come from. Sent to Spark's workers, which cache the schemas."""

    def schema_of(self, schema_id: int) -> str:
        """The schema as JSON, or `UnknownSchema`."""
        ...


@dataclass(frozen=True, slots=True)
class DeclaredSchemas:
    """Schemas that the definition declares."""

    schemas: Mapping[int, str] = field(default_factory=dict)

    def schema_of(self, schema_id: int) -> str:
        found = self.schemas.get(schema_id)
        if found is None:
            known = ", ".join(map(str, sorted(self.schemas)))
            raise UnknownSchema(f"{schema_id}, not among {known}; add its schema to writer_schemas of the source")
        return found
