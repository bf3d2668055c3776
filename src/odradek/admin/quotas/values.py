"""Quotas as text."""

from __future__ import annotations

UNITS = {
    "producer_byte_rate": "bytes/s",
    "consumer_byte_rate": "bytes/s",
    "request_percentage": "%",
    "controller_mutation_rate": "partitions/s",
    "connection_creation_rate": "connections/s",
}


def value_text(key: str, value: float) -> str:
    number = f"{int(value):,}" if value == int(value) else f"{value:g}"
    return f"{number} {UNITS.get(key, '')}".rstrip()
