"""Small text files of one folder: on a local disk, or on shared storage by another class with the same methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.pipelines.operating.status_files import replace_file

if TYPE_CHECKING:
    from pathlib import Path


class SmallFiles(Protocol):
    """Reads and writes whole files by their path below the folder."""

    def read(self, name: str) -> str | None:
        """The text of a file; None if it does not exist."""

    def replace(self, name: str, text: str) -> None:
        """Writes a file, whether it exists or not."""

    def create(self, name: str, text: str) -> bool:
        """Writes a file unless it exists; returns whether it did."""

    def remove(self, name: str) -> None:
        """Removes a file if it exists."""

    def has(self, name: str) -> bool:
        """Whether a file or folder exists."""


class LocalFiles:
    """Files of a local folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def replace(self, name: str, text: str) -> None:
        replace_file(self._folder / name, text)

    def create(self, name: str, text: str) -> bool:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with (self._folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            return False
        return True

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        return (self._folder / name).exists()
