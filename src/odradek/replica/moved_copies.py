"""After a crash between the exchange of a move and the removal of the old copy, two log directories have a copy of the
partition: which of them is kept. Blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.log.batch_scan import scan_checked
from odradek.log.log_directory import MOVED_FROM_FILE, encode_uuid
from odradek.replica.move_rules import keeps_moved_copy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.protocol.topic_partition import TopicPartition

log = get_logger(__name__)


def choose_moved_copy(key: TopicPartition, one: LogDirectory, other: LogDirectory, host: Host) -> LogDirectory | None:
    """The log directory of the copy to keep; None when neither was moved from the other. The old copy is to be removed
    when the moved one is complete; a moved copy that is not is set aside."""
    if _is_moved(key, one, other, host):
        moved, original = one, other
    elif _is_moved(key, other, one, host):
        moved, original = other, one
    else:
        return None
    if keeps_moved_copy(_end_offset(moved, key, host), _end_offset(original, key, host)):
        renamed = original.schedule_delete(*key)
        host.disk.sync_directory(original.path)
        original.scheduled_deletes.append(renamed)
        return moved
    log.warning("an incomplete copy of a moved partition set aside", renamed_to=moved.set_aside(*key))
    return original


def forget_moves(chosen: Mapping[TopicPartition, LogDirectory], host: Host) -> None:
    """The chosen copies are the only ones: they are not newer than others. A log directory that is not in use may have
    an old copy, but gets none that is newer."""
    for key, directory in chosen.items():
        marker = f"{directory.partition_directory(*key)}/{MOVED_FROM_FILE}"
        if host.disk.exists(marker):
            host.disk.remove(marker)
            host.disk.sync_directory(directory.partition_directory(*key))


def _is_moved(key: TopicPartition, moved: LogDirectory, original: LogDirectory, host: Host) -> bool:
    try:
        directory_id = host.disk.read_file(f"{moved.partition_directory(*key)}/{MOVED_FROM_FILE}").decode()
    except FileNotFoundError:
        return False
    properties = original.meta_properties
    return properties is not None and directory_id == encode_uuid(properties.directory_id)


def _end_offset(directory: LogDirectory, key: TopicPartition, host: Host) -> int:
    """The end of the last sound batch, or the name of an empty last segment."""
    path = directory.partition_directory(*key)
    names = sorted(name for name in host.disk.list_directory(path) if name.endswith(".log"))
    if not names:
        return 0
    file = host.disk.open(f"{path}/{names[-1]}")
    end_offset = int(names[-1].removesuffix(".log"))
    for _, header in scan_checked(file, file.size()):
        end_offset = header.last_offset + 1
    return end_offset
