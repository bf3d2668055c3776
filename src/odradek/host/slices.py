"""A stretch of a file on its way to a socket: the bytes stay in the kernel unless somebody asks to read them."""

from odradek.host.disk import File


class FileSlice:
    """Holds its file, so a segment that is removed while the slice waits for a slow client stays readable."""

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
        """Blocks, so that sending it will not."""
        self.file.bring_into_memory(self.size_bytes, self.position)

    def __repr__(self) -> str:
        return f"FileSlice(position={self.position}, size_bytes={self.size_bytes})"
