"""After a crash between the exchange of a move and the removal of the old copy, two log directories have a copy of the
partition: which of them is kept. Blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.log.batch_scan import scan_checked
from odradek.log.leader_epochs import FILE_NAME as EPOCHS_FILE_NAME
from odradek.log.leader_epochs import decode_leader_epochs
from odradek.log.stored_segment import LOG_SUFFIX
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_EPOCH
from odradek.replica.moves.markers import id_of, mark_new_copy, read_new_copy, read_old_copy, unmark_new_copy
from odradek.replica.moves.rules import LogEnd, keeps_moved_copy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.protocol.topic_partition import TopicPartition

log = get_logger(__name__)


def choose_moved_copy(
    key: TopicPartition, recovery_points: Mapping[LogDirectory, int], host: Host
) -> LogDirectory | None:
    """The log directory of the copy to keep, of two that have one; None when neither was moved from the other. The old
    copy is to be removed when the moved one is complete; a moved copy that is not is set aside."""
    one, other = recovery_points
    for moved, original in ((one, other), (other, one)):
        marker = read_new_copy(moved.partition_directory(*key), host)
        if marker is not None and marker.source_id == id_of(original):
            ends = (_log_end(each.partition_directory(*key), recovery_points[each], host) for each in (moved, original))
            if marker.is_complete or keeps_moved_copy(*ends):
                _delete(original, key, host)
                return moved
            log.warning("an incomplete copy of a moved partition set aside", renamed_to=moved.set_aside(*key))
            return original
    return None


def remove_if_moved(key: TopicPartition, directory: LogDirectory, usable: Collection[LogDirectory], host: Host) -> bool:
    """Whether this was the old copy of a partition whose new copy is durable in another log directory. It is set aside
    if that directory cannot be used."""
    target_id = read_old_copy(directory.partition_directory(*key), host)
    if target_id is None:
        return False
    if target_id in {id_of(each) for each in usable}:
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
    stays, because that directory may have an old copy, which misses everything that happens from this start on."""
    usable_ids = {id_of(each) for each in usable}
    for key, directory in chosen.items():
        path = directory.partition_directory(*key)
        marker = read_new_copy(path, host)
        if marker is None:
            continue
        if marker.source_id in usable_ids:
            unmark_new_copy(path, host)
        elif not marker.is_complete:
            mark_new_copy(path, marker.source_id, host, is_complete=True)


def _log_end(path: str, recovery_point_offset: int, host: Host) -> LogEnd:
    """Finds the last sound batch that a recovery would keep: a power loss may have taken batches before others that it
    left. Without a batch, a single segment says that those before it were removed on purpose. The name of an empty
    segment after other ones says nothing: it may outlive the batches before it."""
    names = sorted(name for name in host.disk.list_directory(path) if name.endswith(LOG_SUFFIX))
    durable_count = sum(_base_offset(name) < recovery_point_offset for name in names)
    end = None
    for name in names[max(0, durable_count - 1) :]:
        if end is not None and end.end_offset != _base_offset(name):
            break
        file = host.disk.open(f"{path}/{name}")
        sound_bytes = 0
        for position, header in scan_checked(file, file.size()):
            end = LogEnd(header.partition_leader_epoch, header.last_offset + 1)
            sound_bytes = position + header.size_bytes
        if sound_bytes < file.size():
            break
    if end is not None:
        return end
    if len(names) == 1:
        return LogEnd(_latest_epoch(path, host), _base_offset(names[0]))
    return LogEnd(NO_EPOCH, _base_offset(names[0]) if names else 0)


def _base_offset(name: str) -> int:
    return int(name.removesuffix(LOG_SUFFIX))


def _latest_epoch(path: str, host: Host) -> int:
    try:
        entries = decode_leader_epochs(host.disk.read_file(f"{path}/{EPOCHS_FILE_NAME}"))
    except (FileNotFoundError, MalformedMessage):
        return NO_EPOCH
    return entries[-1].epoch if entries else NO_EPOCH
