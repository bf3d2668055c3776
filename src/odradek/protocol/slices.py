"""Bytes that lie elsewhere: a `Slice` goes into an encoded message untouched, so that a file is sent without a copy."""

from typing import Protocol, TypeAlias


class Slice(Protocol):
    def __len__(self) -> int: ...

    def read(self) -> bytes: ...


# What an encoded message is made of, in the order of the wire.
Part: TypeAlias = bytes | bytearray | memoryview | Slice
