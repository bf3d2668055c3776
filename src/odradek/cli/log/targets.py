"""From what a user names to the partitions in it: a file, a partition's directory, or one of a broker's `log.dirs`;
and what the files beside the partitions say about them."""

from __future__ import annotations

import fcntl
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.cli.framework.failure import Failure
from odradek.cli.log.findings import Finding, Remedy
from odradek.host.host import real_host
from odradek.log.checkpoints import decode_checkpoint
from odradek.log.log_directory import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOCK_FILE,
    LOG_START_OFFSET_FILE,
    META_PROPERTIES_FILE,
    RECOVERY_POINT_FILE,
    LogDirectoryError,
    read_meta_properties,
)
from odradek.log.segment import LOG_SUFFIX
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from odradek.cli.log.findings import PartitionCheck

_PARTITION_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<index>\d{1,10})")
_CHECKPOINTS = {
    RECOVERY_POINT_FILE: "recovery point",
    HIGH_WATERMARK_FILE: "high watermark",
    LOG_START_OFFSET_FILE: "log start offset",
    CLEANER_OFFSET_FILE: "cleaned part",
}


@dataclass
class Place:
    """What one argument of the command line stands for."""

    path: str
    log_directory: str
    partitions: list[str] = field(default_factory=list)
    only: str | None = None  # one segment of the one partition
    is_whole_directory: bool = False

    @property
    def is_live(self) -> bool:
        """Whether a broker has the directory."""
        try:
            with open(os.path.join(self.log_directory, LOCK_FILE), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @property
    def size_bytes(self) -> int:
        return sum(
            entry.stat().st_size
            for partition in self.partitions
            for entry in os.scandir(partition)
            if entry.name.endswith(LOG_SUFFIX)
        )


def shown_path(path: str) -> str:
    """As short as it can be copied."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def find_place(path: str) -> Place:
    path = os.path.abspath(path)
    if not os.path.isdir(path):
        if not path.endswith(LOG_SUFFIX):
            raise Failure(f"{path}: name a segment (.log), a partition's directory, or one of a broker's log.dirs")
        partition = os.path.dirname(path)
        return Place(path, os.path.dirname(partition), [partition], only=os.path.basename(path))
    if any(name.endswith(LOG_SUFFIX) for name in os.listdir(path)):
        return Place(path, os.path.dirname(path), [path])
    found = sorted(entry.path for entry in os.scandir(path) if entry.is_dir() and _PARTITION_NAME.fullmatch(entry.name))
    if not found and not os.path.exists(os.path.join(path, META_PROPERTIES_FILE)):
        raise Failure(f"{path}: neither segments (.log) nor partitions in it")
    return Place(path, path, found, is_whole_directory=True)


def check_log_directory(path: str, checks: list[PartitionCheck], *, is_live: bool) -> list[Finding]:
    """The files beside the partitions. A running broker may have written further since the logs were read."""
    findings = []
    try:
        read_meta_properties(path, real_host())
    except LogDirectoryError as problem:
        findings.append(Finding(os.path.join(path, META_PROPERTIES_FILE), str(problem), Remedy.ASK))
    ends = {os.path.basename(check.path): check.end_offset for check in checks}
    for name, meaning in _CHECKPOINTS.items():
        file_path = os.path.join(path, name)
        try:
            with open(file_path, "rb") as file:
                offsets = decode_checkpoint(file.read())
        except FileNotFoundError:
            continue
        except MalformedMessage as problem:
            findings.append(Finding(file_path, str(problem), Remedy.SET_ASIDE))
            continue
        for (topic, index), offset in offsets.items():
            end_offset = ends.get(f"{topic}-{index}")
            if end_offset is not None and offset > end_offset and not is_live:
                text = f"{topic}-{index}: {meaning} {offset} lies after the end of its log at {end_offset}"
                findings.append(Finding(file_path, text, Remedy.ASK))
    return findings
