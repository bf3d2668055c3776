"""A range of a file that is sent to a socket: the bytes stay in the kernel unless `read` is called."""

from odradek.host.disk import File


class FileSlice:
    """Holds its file open, so that a segment that is removed while a slow client takes the slice stays readable."""

    __slots__ = ("file", "position", "size_bytes")

    def __init__(self, file: File, position: int, size_bytes: int) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        return self.file.read_at(self.size_bytes, self.position)

    def is_in_memory(self) -> bool:
        return self.file.is_in_memory(self.size_bytes, self.position)

    def bring_into_memory(self) -> None:
        """Read it from the disk, so that sending it does not block. Blocks."""
        self.file.bring_into_memory(self.size_bytes, self.position)

    def __repr__(self) -> str:
        return f"FileSlice(position={self.position}, size_bytes={self.size_bytes})"
