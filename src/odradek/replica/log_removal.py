"""The end of logs: renaming and removing those of deleted partitions, closing all at shutdown. Blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.host.disk import Disk
    from odradek.log.log_directory import LogDirectory
    from odradek.replica.partition import Partition

log = get_logger(__name__)


def rename_for_deletion(partitions: Iterable[Partition]) -> list[str]:
    """The new paths. A partition that cannot be renamed, or is gone, does not keep the others from being renamed."""
    renamed = []
    for each in partitions:
        if each.directory.failure is not None:
            continue  # a later start sets it aside
        try:
            renamed.append(each.directory.schedule_delete(each.topic, each.index))
        except FileNotFoundError:
            continue  # its log could never be created
        except OSError as problem:
            log.error(
                "a deleted partition could not be removed: the next start sets it aside", topic=each.topic,
                partition=each.index, reason=problem,
            )  # fmt: skip
    return renamed


def remove_trees(disk: Disk, paths: Iterable[str], must_stop: Callable[[], bool]) -> None:
    """A path that cannot be removed, or is gone, does not keep the others from being removed. `must_stop` is asked
    before each: the next start removes the rest."""
    for path in paths:
        if must_stop():
            return
        try:
            disk.remove_tree(path)
        except FileNotFoundError:
            continue
        except OSError as problem:
            log.error("a deleted partition could not be removed: the next start removes it", path=path, reason=problem)


def close_logs(partitions: Iterable[Partition]) -> bool:
    """Whether all of them could be closed."""
    is_clean = True
    for partition in partitions:
        try:
            partition.log.close()
        except OSError as problem:
            is_clean = False
            log.error("a log could not be closed", topic=partition.topic, partition=partition.index, reason=problem)
    return is_clean


def close_directory(directory: LogDirectory, is_clean: bool) -> None:
    try:
        directory.close(is_clean=is_clean)
    except OSError as problem:
        log.error("a log directory could not be closed", path=directory.path, reason=problem)
