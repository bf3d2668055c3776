"""After a crash between the exchange of a move and the removal of the old copy, two log directories have a copy of the
partition: which of them is kept. Blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.log.batch_scan import scan_checked
from odradek.log.log_directory import MOVED_FROM_FILE, MOVED_TO_FILE, encode_uuid
from odradek.protocol.sentinels import NO_EPOCH
from odradek.replica.move_rules import LogEnd, keeps_moved_copy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
    if keeps_moved_copy(_log_end(moved, key, host), _log_end(original, key, host)):
        _delete(original, key, host)
        return moved
    log.warning("an incomplete copy of a moved partition set aside", renamed_to=moved.set_aside(*key))
    return original


def remove_if_moved(key: TopicPartition, directory: LogDirectory, usable: Collection[LogDirectory], host: Host) -> bool:
    """Whether this was the old copy of a partition whose new copy is durable in another log directory. It is set aside
    if that directory cannot be used."""
    marker = f"{directory.partition_directory(*key)}/{MOVED_TO_FILE}"
    if not host.disk.exists(marker):
        return False
    if host.disk.read_file(marker).decode() in {_id_of(each) for each in usable}:
        _delete(directory, key, host)
    else:
        log.warning("the old copy of a moved partition set aside", renamed_to=directory.set_aside(*key))
    return True


def _delete(directory: LogDirectory, key: TopicPartition, host: Host) -> None:
    renamed = directory.schedule_delete(*key)
    host.disk.sync_directory(directory.path)
    directory.scheduled_deletes.append(renamed)


def forget_moves(chosen: Mapping[TopicPartition, LogDirectory], usable: Collection[LogDirectory], host: Host) -> None:
    """The chosen copies are the only ones in the usable log directories. A marker that names another log directory
    stays: that directory may have an old copy."""
    usable_ids = {_id_of(each) for each in usable}
    for key, directory in chosen.items():
        source_id = _source_id(key, directory, host)
        if source_id is not None and source_id in usable_ids:
            path = directory.partition_directory(*key)
            host.disk.remove(f"{path}/{MOVED_FROM_FILE}")
            host.disk.sync_directory(path)


def _is_moved(key: TopicPartition, moved: LogDirectory, original: LogDirectory, host: Host) -> bool:
    source_id = _source_id(key, moved, host)
    return source_id is not None and source_id == _id_of(original)


def _source_id(key: TopicPartition, moved: LogDirectory, host: Host) -> str | None:
    """The id of the log directory that the partition was moved from."""
    marker = f"{moved.partition_directory(*key)}/{MOVED_FROM_FILE}"
    return host.disk.read_file(marker).decode() if host.disk.exists(marker) else None


def _id_of(directory: LogDirectory) -> str | None:
    properties = directory.meta_properties
    return None if properties is None else encode_uuid(properties.directory_id)


def _log_end(directory: LogDirectory, key: TopicPartition, host: Host) -> LogEnd:
    """Of the last sound batch. The name of an empty last segment counts only if there is no batch: it may outlive a
    power loss that took the batches before it."""
    path = directory.partition_directory(*key)
    names = sorted(name for name in host.disk.list_directory(path) if name.endswith(".log"))
    for name in reversed(names):
        file = host.disk.open(f"{path}/{name}")
        end = None
        for _, header in scan_checked(file, file.size()):
            end = LogEnd(header.partition_leader_epoch, header.last_offset + 1)
        if end is not None:
            return end
    return LogEnd(NO_EPOCH, int(names[-1].removesuffix(".log")) if names else 0)
