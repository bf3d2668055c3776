"""One entry of `log.dirs`: the broker that owns it, its partitions, and the files that Kafka keeps beside them
(`.lock`, `meta.properties`, the clean-shutdown mark, the offset checkpoints). Everything here blocks."""

import base64
import binascii
import re
import uuid
from collections.abc import Mapping

from odradek.conventions.dataclass import dataclass
from odradek.host.disk import Disk, Lock
from odradek.host.host import Host
from odradek.host.logs import get_logger
from odradek.log.checkpoints import OffsetCheckpoint
from odradek.log.escaped_names import escape_topic, unescape_topic
from odradek.protocol.checksum import crc32c
from odradek.protocol.topic_partition import TopicPartition

logger = get_logger(__name__)

LOCK_FILE = ".lock"
META_PROPERTIES_FILE = "meta.properties"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_FILE = "log-start-offset-checkpoint"
CLEANER_OFFSET_FILE = "cleaner-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
PARTITION_METADATA_FILE = "partition.metadata"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"

_LONGEST_NAME = 255
# Kafka's, or the escaped name of a topic in a stream.
_ESCAPED_TOPIC = r"(?:(?:%2F[A-Za-z0-9_-]+)+%3A)?[A-Za-z0-9._-]{1,249}"
_TOPIC_NAME = re.compile(_ESCAPED_TOPIC)
_PARTITION_NAME = re.compile(rf"({_ESCAPED_TOPIC})-(\d{{1,10}})")
_CHECKSUM_LINE = re.compile(r"^#crc32c=.*$", re.MULTILINE)
_FUTURE_NAME = re.compile(rf"({_ESCAPED_TOPIC})-(\d{{1,10}})\.[0-9a-f]{{32}}{FUTURE_SUFFIX}")


class LogDirectoryError(Exception):
    """The directory cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: uuid.UUID


def partition_of(directory_name: str) -> TopicPartition | None:
    """The partition whose directory has this name."""
    match = _PARTITION_NAME.fullmatch(directory_name)
    return None if match is None else (unescape_topic(match[1]), int(match[2]))


def encode_uuid(value: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def decode_uuid(text: str) -> uuid.UUID:
    """Raises ValueError for text that is no UUID."""
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except binascii.Error as error:
        raise ValueError(f"{text!r} is not a Kafka uuid") from error


def read_meta_properties(path: str, host: Host) -> MetaProperties | None:
    """The broker that owns the directory; None when it was never used."""
    file = f"{path}/{META_PROPERTIES_FILE}"
    try:
        data = host.disk.read_file(file)
    except FileNotFoundError:
        return None
    try:
        text = data.decode()
        lines = [line.partition("=") for line in text.splitlines() if line.strip() and not line.startswith("#")]
        properties = {name.strip(): value.strip() for name, _, value in lines}
        if any(line not in ("", _checksum_line(properties)) for line in _CHECKSUM_LINE.findall(text)):
            raise ValueError("it does not match its checksum; remove the line #crc32c if it was edited")
        if properties["version"] != "1":
            raise ValueError(f"version {properties['version']}")
        return MetaProperties(
            properties["cluster.id"], int(properties["node.id"]), decode_uuid(properties["directory.id"])
        )
    except (KeyError, ValueError) as error:
        raise LogDirectoryError(
            f"{file} cannot be read ({error}): restore it, or move the directory away to start with an empty one"
        ) from error


def write_meta_properties(path: str, host: Host, properties: MetaProperties) -> None:
    lines = [
        f"cluster.id={properties.cluster_id}",
        f"directory.id={encode_uuid(properties.directory_id)}",
        f"node.id={properties.node_id}",
        "version=1",
    ]
    lines.append(_checksum_line(dict(line.split("=", 1) for line in lines)))
    host.disk.replace_file(f"{path}/{META_PROPERTIES_FILE}", ("\n".join(lines) + "\n").encode())


def _checksum_line(properties: Mapping[str, str]) -> str:
    """A comment, for Kafka."""
    text = "".join(f"{name}={value}\n" for name, value in sorted(properties.items()))
    return f"#crc32c={crc32c(text.encode()):08x}"


def make_durable_directory(path: str, host: Host) -> None:
    """Syncs the names of the directory and of its parents, without which synced files inside could be lost."""
    parents = []
    created = path.rstrip("/")
    while created and not host.disk.exists(created):
        parent = created.rpartition("/")[0].rstrip("/")
        parents.append(parent or ("/" if path.startswith("/") else "."))
        created = parent
    if parents:
        host.disk.make_directories(path)
    for parent in reversed(parents):
        host.disk.sync_directory(parent)


class LogDirectory:
    __slots__ = (
        "_host",
        "_lock",
        "cleaner_offsets",
        "failure",
        "high_watermarks",
        "log_start_offsets",
        "meta_properties",
        "path",
        "recovery_points",
        "scheduled_deletes",
        "was_cleanly_shut_down",
    )

    def __init__(
        self,
        path: str,
        host: Host,
        meta_properties: MetaProperties | None,
        lock: Lock | None,
        was_cleanly_shut_down: bool,
    ) -> None:
        self.path = path
        self.failure: str | None = None  # why the directory cannot be used
        self.meta_properties = meta_properties
        self.was_cleanly_shut_down = was_cleanly_shut_down
        self.recovery_points = OffsetCheckpoint(host.disk, f"{path}/{RECOVERY_POINT_FILE}")
        self.log_start_offsets = OffsetCheckpoint(host.disk, f"{path}/{LOG_START_OFFSET_FILE}")
        self.cleaner_offsets = OffsetCheckpoint(host.disk, f"{path}/{CLEANER_OFFSET_FILE}")
        self.high_watermarks = OffsetCheckpoint(host.disk, f"{path}/{HIGH_WATERMARK_FILE}")
        self.scheduled_deletes: list[str] = []
        """The directories that `schedule_delete` had renamed and that were not removed when the last run ended."""
        self._host = host
        self._lock = lock

    @classmethod
    def open(cls, path: str, host: Host, *, cluster_id: str, node_id: int) -> "LogDirectory":
        """Locks the directory for this broker, and creates it when it does not exist. Raises LogDirectoryError."""
        disk = host.disk
        make_durable_directory(path, host)
        lock = disk.lock(f"{path}/{LOCK_FILE}")
        if lock is None:
            raise LogDirectoryError(f"{path} is used by another broker: stop it, or set another log.dirs")
        try:
            meta_properties = _claim(path, host, cluster_id, node_id)
            was_cleanly_shut_down = disk.exists(f"{path}/{CLEAN_SHUTDOWN_FILE}")
            if was_cleanly_shut_down:
                # Removed before the first write, so that the next start detects a crash.
                disk.remove(f"{path}/{CLEAN_SHUTDOWN_FILE}")
                disk.sync_directory(path)
            entries = [f"{path}/{name}" for name in disk.list_directory(path)]
            deleted = [each for each in entries if each.endswith(DELETE_SUFFIX)]
            disk.make_private((path, *entries))  # older versions created them for every user to read
        except BaseException:
            lock.release()
            raise
        directory = cls(path, host, meta_properties, lock, was_cleanly_shut_down)
        directory.scheduled_deletes = [each for each in deleted if disk.is_directory(each)]
        return directory

    @classmethod
    def unusable(cls, path: str, host: Host, reason: str) -> "LogDirectory":
        """A directory that failed before it could be opened: its partitions must not count as lost."""
        directory = cls(path, host, None, None, False)
        directory.failure = reason
        return directory

    def close(self, *, is_clean: bool) -> None:
        """`is_clean` when every log was closed: then the next start skips recovery."""
        if self._lock is None:
            return
        if is_clean and self.failure is None:
            self._host.disk.replace_file(f"{self.path}/{CLEAN_SHUTDOWN_FILE}", b'{"version":0,"brokerEpoch":-1}')
        self._lock.release()

    def last_used_ms(self) -> int | None:
        """When a broker last wrote the recovery point checkpoint: every minute while it runs, and when it stops."""
        try:
            return self._host.disk.modified_ms(self.recovery_points.path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def partition_directory(self, topic: str, index: int) -> str:
        """Raises ValueError for an invalid topic name: a path must never lead out of this directory."""
        escaped = escape_topic(topic)
        if not _TOPIC_NAME.fullmatch(escaped) or topic in (".", "..") or index < 0:
            raise ValueError(f"{topic!r} partition {index} is not a partition's name")
        return f"{self.path}/{escaped}-{index}"

    def partitions(self) -> dict[TopicPartition, str]:
        """The partitions that have a directory here."""
        found = {}
        for name in self._host.disk.list_directory(self.path):
            partition = partition_of(name)
            if partition is not None and self._host.disk.is_directory(f"{self.path}/{name}"):
                found[partition] = f"{self.path}/{name}"
        return found

    def new_future_directory(self, topic: str, index: int) -> str:
        """The path of a copy of the partition that is to replace the copy in another log directory."""
        return f"{self.partition_directory(topic, index)}.{self._host.entropy.uuid().hex}{FUTURE_SUFFIX}"

    def futures(self) -> dict[TopicPartition, list[str]]:
        """The copies of partitions that were being made here when the last run ended."""
        found: dict[TopicPartition, list[str]] = {}
        for name in self._host.disk.list_directory(self.path):
            match = _FUTURE_NAME.fullmatch(name)
            if match and self._host.disk.is_directory(f"{self.path}/{name}"):
                found.setdefault((unescape_topic(match[1]), int(match[2])), []).append(f"{self.path}/{name}")
        return found

    def write_partition_metadata(self, topic: str, index: int, topic_id: uuid.UUID, path: str | None = None) -> None:
        """Does not sync: the metadata store has the id too, and thousands of partitions may be created at once."""
        data = _encode_partition_metadata(topic, index, topic_id)
        directory = path or self.partition_directory(topic, index)
        file = self._host.disk.open(f"{directory}/{PARTITION_METADATA_FILE}", create=True)
        file.write_at(data, 0)
        file.truncate(len(data))

    def read_partition_metadata(self, topic: str, index: int, path: str | None = None) -> uuid.UUID | None:
        """The topic's id; None when the file was lost or is damaged."""
        directory = path or self.partition_directory(topic, index)
        try:
            data = self._host.disk.read_file(f"{directory}/{PARTITION_METADATA_FILE}")
            version, topic_id_line, *checksum = data.decode().splitlines()
            if version != "version: 0":
                return None
            topic_id = decode_uuid(topic_id_line.removeprefix("topic_id: "))
            is_damaged = bool(checksum) and data != _encode_partition_metadata(topic, index, topic_id)
            return None if is_damaged else topic_id
        except (FileNotFoundError, ValueError):
            return None

    def missing_checkpoints(self) -> list[str]:
        return missing_checkpoints(self.path, self._host.disk, was_cleanly_shut_down=self.was_cleanly_shut_down)

    def schedule_delete(self, topic: str, index: int) -> str:
        """Renames the partition's directory, which is quick and atomic; the caller removes the returned directory."""
        return self._rename(topic, index, DELETE_SUFFIX)

    def set_aside(self, topic: str, index: int) -> str:
        """Renames the directory of a partition that the metadata does not have, as Kafka does with stray partitions: an
        operator may need it."""
        return self._rename(topic, index, STRAY_SUFFIX)

    def _rename(self, topic: str, index: int, suffix: str) -> str:
        source = self.partition_directory(topic, index)
        suffix = f"-{index}.{self._host.entropy.uuid().hex}{suffix}"
        target = f"{self.path}/{escape_topic(topic)[: _LONGEST_NAME - len(suffix)]}{suffix}"
        self._host.disk.rename(source, target)
        return target


def _encode_partition_metadata(topic: str, index: int, topic_id: uuid.UUID) -> bytes:
    """Kafka reads the first two lines. The checksum includes the partition, whose file it is."""
    text = f"version: 0\ntopic_id: {encode_uuid(topic_id)}\n"
    checksum = crc32c(f"{topic}-{index} {text}".encode())
    return f"{text}crc32c: {checksum:08x}\n".encode()


def missing_checkpoints(path: str, disk: Disk, *, was_cleanly_shut_down: bool) -> list[str]:
    """A broker writes the checkpoints in this order, every minute and when it stops."""
    files = [f"{path}/{name}" for name in (LOG_START_OFFSET_FILE, RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE)]
    missing = [file for file in files if not disk.exists(file)]
    is_written = was_cleanly_shut_down or any(file not in missing for file in files[1:])
    return missing if is_written else []


def is_future_name_too_long(topic: str, index: int) -> bool:
    """Whether the directory of a copy would have a longer name than file systems allow."""
    return len(escape_topic(topic)) + len(f"-{index}.{FUTURE_SUFFIX}") + 32 > _LONGEST_NAME


def _claim(path: str, host: Host, cluster_id: str, node_id: int) -> MetaProperties:
    found = read_meta_properties(path, host)
    if found is None:
        if host.disk.exists(f"{path}/{RECOVERY_POINT_FILE}"):
            logger.warning("meta.properties is missing and is written again, with a new directory id", path=path)
        claimed = MetaProperties(cluster_id, node_id, host.entropy.uuid())
        write_meta_properties(path, host, claimed)
        return claimed
    if found.cluster_id != cluster_id:
        raise LogDirectoryError(
            f"{path} belongs to cluster {found.cluster_id}, this broker to {cluster_id}: set another log.dirs"
        )
    if found.node_id != node_id:
        raise LogDirectoryError(
            f"{path} belongs to node.id {found.node_id}, this broker is {node_id}: set node.id or log.dirs accordingly"
        )
    return found
