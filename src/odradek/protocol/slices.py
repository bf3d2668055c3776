"""A `Slice` refers to bytes of a file; an encoded message contains it as a part, so that no bytes are copied."""

from typing import Protocol, TypeAlias


class Slice(Protocol):
    def __len__(self) -> int: ...

    def read(self) -> bytes: ...


# The parts of an encoded message, in wire order.
Part: TypeAlias = bytes | bytearray | memoryview | Slice
