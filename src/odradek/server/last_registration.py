"""The last registrations of a broker, in a file of each of its log directories. A broker that has lost no records since
names them when it registers again, and stays in the sets of in-sync and eligible replicas (KIP-966).

Each file names all directories of that time by their ids: a directory that was emptied has another id, and one that was
exchanged for an older copy has an older registration.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from odradek.host.logs import get_logger
from odradek.log.log_directory import encode_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory

log = get_logger(__name__)

FILE_NAME = "odradek-registration.json"


class _Registration(NamedTuple):
    broker_epochs: tuple[int, ...]  # the newest last
    boot_id: str
    directory_ids: frozenset[str]


def read_previous_epochs(directories: Sequence[LogDirectory], host: Host) -> Sequence[int]:
    """The epochs of the last registrations, the newest last; none if records may have been lost since.

    Every directory that the last registration names must be there, with the same registration. Without a clean
    shutdown, the writes of a process survive it as long as the machine does not restart. A directory that was added to
    `log.dirs` since has lost nothing."""
    found: dict[str, _Registration] = {}
    for directory in directories:
        if directory.failure is not None:
            return ()  # its replicas have lost their records
        registration = _read(directory, host)
        if registration is not None:
            found[_id(directory)] = registration
            if not (directory.was_cleanly_shut_down or registration.boot_id == host.boot_id != ""):
                return ()
    if not found:
        return ()
    newest = max(found.values(), key=lambda each: each.broker_epochs)
    missing = newest.directory_ids - found.keys()
    if missing or any(each != newest for each in found.values()):
        log.warning(
            "log directories were emptied, exchanged or removed since this broker last ran; its replicas are fetched "
            "again before they count as in sync",
            missing=sorted(missing),
        )
        return ()
    return newest.broker_epochs


def write_epochs(directories: Sequence[LogDirectory], host: Host, broker_epochs: Sequence[int]) -> None:
    """OSError for a directory that cannot be written: it has an older registration than the others then."""
    usable = [directory for directory in directories if directory.failure is None]
    fields = {
        "broker_epoch": broker_epochs[-1],
        "earlier_epochs": [*broker_epochs[:-1]],
        "boot_id": host.boot_id,
        "directory_ids": sorted(_id(each) for each in usable),
    }
    for directory in usable:
        host.disk.replace_file(f"{directory.path}/{FILE_NAME}", json.dumps(fields).encode())


def _read(directory: LogDirectory, host: Host) -> _Registration | None:
    try:
        fields = json.loads(host.disk.read_file(f"{directory.path}/{FILE_NAME}"))
        # Earlier versions wrote one file, in the first directory.
        directory_ids = frozenset(map(str, fields.get("directory_ids", [_id(directory)])))
        epochs = (*map(int, fields.get("earlier_epochs", ())), int(fields["broker_epoch"]))
        return _Registration(epochs, str(fields["boot_id"]), directory_ids)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _id(directory: LogDirectory) -> str:
    properties = directory.meta_properties
    return "" if properties is None else encode_uuid(properties.directory_id)
