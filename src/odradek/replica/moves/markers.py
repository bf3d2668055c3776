"""The two files that say, after a crash, which copy of a moved partition is to be used. Everything here blocks.

`moved-from`, in the new copy, has the id of the log directory with the old one, and says whether the new copy is
complete: everything that the old one had is durable in it. `moved-to`, in the old copy, has the id of the log directory
whose copy is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.log.log_directory import encode_uuid

if TYPE_CHECKING:
    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory

MOVED_FROM_FILE = "moved-from"
MOVED_TO_FILE = "moved-to"
_COMPLETE = "complete"


class MovedFrom(NamedTuple):
    source_id: str
    is_complete: bool


def id_of(directory: LogDirectory) -> str | None:
    properties = directory.meta_properties
    return None if properties is None else encode_uuid(properties.directory_id)


def id_of_usable(directory: LogDirectory) -> str:
    found = id_of(directory)
    assert found is not None, "a log directory without an id is in use"
    return found


def mark_new_copy(path: str, source_id: str, host: Host, *, is_complete: bool) -> None:
    """Durably, also if the partition directory with this path has the marker."""
    lines = [source_id, _COMPLETE] if is_complete else [source_id]
    host.disk.replace_file(f"{path}/{MOVED_FROM_FILE}", "\n".join(lines).encode())


def read_new_copy(path: str, host: Host) -> MovedFrom | None:
    """None if the partition was not moved, or has no old copy."""
    text = _read(f"{path}/{MOVED_FROM_FILE}", host)
    if text is None:
        return None
    source_id, _, state = text.partition("\n")
    return MovedFrom(source_id, state == _COMPLETE)


def unmark_new_copy(path: str, host: Host) -> None:
    """Durably: there is no old copy."""
    host.disk.remove(f"{path}/{MOVED_FROM_FILE}")
    host.disk.sync_directory(path)


def mark_old_copy(path: str, target_id: str, host: Host) -> None:
    """Durably."""
    host.disk.replace_file(f"{path}/{MOVED_TO_FILE}", target_id.encode())


def read_old_copy(path: str, host: Host) -> str | None:
    """The id of the log directory that the partition was moved to; None if it was not."""
    return _read(f"{path}/{MOVED_TO_FILE}", host)


def _read(path: str, host: Host) -> str | None:
    return host.disk.read_file(path).decode() if host.disk.exists(path) else None
