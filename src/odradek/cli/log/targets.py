"""Finds the partitions that a path stands for: a segment, the directory of a partition, or a log directory of a broker.

Also checks the files of a log directory that describe its partitions: meta.properties and the checkpoints.
"""

from __future__ import annotations

import fcntl
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.cli.log.findings import Finding, Remedy
from odradek.conventions.failures import Failure
from odradek.host.host import real_host
from odradek.host.real_disk import RealDisk
from odradek.log.checkpoints import decode_checkpoint
from odradek.log.log_directory import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOCK_FILE,
    LOG_START_OFFSET_FILE,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    RECOVERY_POINT_FILE,
    LogDirectory,
    LogDirectoryError,
    missing_checkpoints,
    read_meta_properties,
)
from odradek.log.stored_segment import LOG_SUFFIX, NAME_DIGITS
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from odradek.cli.log.findings import PartitionCheck

_PARTITION_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<index>\d{1,10})")
_SEGMENT_NAME = re.compile(rf"\d{{{NAME_DIGITS}}}{re.escape(LOG_SUFFIX)}")
WHAT_TO_NAME = "name a segment (.log), the directory of a partition, or one of the broker's log.dirs"
_CHECKPOINTS = {
    RECOVERY_POINT_FILE: "recovery point",
    HIGH_WATERMARK_FILE: "high watermark",
    LOG_START_OFFSET_FILE: "log start offset",
    CLEANER_OFFSET_FILE: "compacted up to",
}


@dataclass
class Target:
    """The partitions that one argument of the command line stands for."""

    path: str
    log_directory: str
    partitions: list[str] = field(default_factory=list)
    only: str | None = None  # file name of a single segment
    is_whole_directory: bool = False

    @property
    def is_live(self) -> bool:
        """Whether a running broker has locked the directory."""
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
    """The path relative to the current directory, if it is below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def find_target(path: str) -> Target:
    """Failure if the path is neither a segment, nor the directory of a partition, nor a log directory of a broker."""
    path = os.path.abspath(path)
    if not os.path.isdir(path):
        if not _SEGMENT_NAME.fullmatch(os.path.basename(path)):
            raise Failure(f"{path} is not a segment of a log; {WHAT_TO_NAME}")
        partition = os.path.dirname(path)
        return Target(path, os.path.dirname(partition), [partition], only=os.path.basename(path))
    if _has_segments(path):
        return Target(path, os.path.dirname(path), [path])
    named = sorted(entry.path for entry in os.scandir(path) if entry.is_dir() and _PARTITION_NAME.fullmatch(entry.name))
    if not os.path.exists(os.path.join(path, META_PROPERTIES_FILE)) and not any(map(_has_segments, named)):
        raise Failure(f"{path} has no segments (.log), no partitions and no {META_PROPERTIES_FILE}; {WHAT_TO_NAME}")
    return Target(path, path, named, is_whole_directory=True)


def _check_whole(path: str, checks: list[PartitionCheck]) -> list[Finding]:
    """Check that a broker's directory has all files which the broker would write again, without what they said."""
    was_clean = os.path.exists(os.path.join(path, CLEAN_SHUTDOWN_FILE))
    missing = missing_checkpoints(path, RealDisk(), was_cleanly_shut_down=was_clean)
    findings = [Finding(file_path, "is missing", Remedy.NOTHING) for file_path in missing]
    meta_properties = os.path.join(path, META_PROPERTIES_FILE)
    if not os.path.exists(meta_properties):
        findings.append(Finding(meta_properties, "is missing", Remedy.ASK))
    directory = LogDirectory.unusable(path, real_host(), "it is checked")
    for check in checks:
        match = _PARTITION_NAME.fullmatch(os.path.basename(check.path))
        if match and directory.read_partition_metadata(match["topic"], int(match["index"])) is None:
            file_path = os.path.join(check.path, PARTITION_METADATA_FILE)
            findings.append(Finding(file_path, "is missing or damaged", Remedy.NOTHING))
    return findings


def _has_segments(directory: str) -> bool:
    return any(_SEGMENT_NAME.fullmatch(name) for name in os.listdir(directory))


def check_log_directory(path: str, checks: list[PartitionCheck], *, is_live: bool) -> list[Finding]:
    """Check meta.properties and the checkpoints. A running broker may have written more since the logs were read."""
    findings = []
    try:
        read_meta_properties(path, real_host())
    except LogDirectoryError as problem:
        findings.append(Finding(os.path.join(path, META_PROPERTIES_FILE), str(problem), Remedy.ASK))
    if checks and os.path.exists(os.path.join(path, LOCK_FILE)):  # not a copy
        findings += _check_whole(path, checks)
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
                text = f"{topic}-{index}: {meaning} {offset} is after the end of its log, {end_offset}"
                findings.append(Finding(file_path, text, Remedy.ASK))
    return findings
