"""The real disk keeps what the Disk Protocol promises."""

import errno
import fcntl
import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odradek.host import real_disk
from odradek.host.disk import Disk, File
from odradek.host.real_disk import RealDisk, RealFile
from odradek.host.slices import FileSlice
from tests.waiting import eventually


@pytest.fixture
def disk() -> RealDisk:
    return RealDisk()


def test_real_disk_satisfies_the_protocols(disk: RealDisk, tmp_path: Path) -> None:
    checked: Disk = disk
    file: File = checked.open(str(tmp_path / "file"), create=True)
    assert file.size() == 0


def test_what_is_written_at_a_position_is_read_there(disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "file"), create=True)
    file.write_at(b"hello", 3)
    file.write_at(memoryview(bytearray(b"J")), 3)
    assert file.read_at(100, 0) == b"\0\0\0Jello"
    assert file.read_at(2, 4) == b"el"
    assert file.read_at(5, 100) == b""
    file.truncate(4)
    assert file.size() == 4
    file.sync()


def test_opening_a_missing_file_fails_unless_it_is_created(disk: RealDisk, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open(str(tmp_path / "missing"))


def test_a_short_write_goes_on_with_the_rest(disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: real_pwrite(fd, memoryview(data)[:3], position))
    file = disk.open(str(tmp_path / "file"), create=True)
    file.write_at(b"0123456789", 2)
    assert file.read_at(100, 0) == b"\0\x000123456789"


def test_a_short_read_goes_on_to_the_end(disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, position: real_pread(fd, min(size, 3), position))
    file = disk.open(str(tmp_path / "file"), create=True)
    file.write_at(b"0123456789", 0)
    assert file.read_at(8, 1) == b"12345678"
    assert file.read_at(100, 4) == b"456789"


def test_a_slice_outlives_the_name_and_the_owner_of_its_file(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    file = disk.open(path, create=True)
    file.write_at(b"0123456789", 0)
    piece = FileSlice(file, 2, 3)
    disk.remove(path)
    del file
    assert (len(piece), piece.read()) == (3, b"234")


def test_a_file_closes_itself_with_its_last_reference(disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "file"), create=True)
    descriptor = file.descriptor
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_closed_file_gives_no_descriptor(disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "file"), create=True)
    file.close()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        _ = file.descriptor
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.read_at(1, 0)


def test_replace_file_leaves_the_old_one_when_it_fails(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "file")
    disk.replace_file(path, b"old")

    def fail(self: RealFile) -> None:
        raise OSError("no")

    monkeypatch.setattr(RealFile, "sync", fail)
    with pytest.raises(OSError, match="no"):
        disk.replace_file(path, b"new")
    assert disk.read_file(path) == b"old"
    assert disk.list_directory(str(tmp_path)) == ["file"]


def test_directories_and_names(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b")
    disk.make_directories(path)
    disk.make_directories(path)
    disk.replace_file(f"{path}/one", b"1")
    disk.rename(f"{path}/one", f"{path}/two")
    assert (disk.exists(f"{path}/one"), disk.exists(f"{path}/two")) == (False, True)
    assert disk.file_size(f"{path}/two") == 1
    disk.sync_directory(path)
    total, usable = disk.space(path)
    assert 0 < usable <= total
    disk.remove_tree(str(tmp_path / "a"))
    assert not disk.exists(path)


def test_a_lock_is_held_by_one_process(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    program = f"from odradek.host.real_disk import RealDisk; print(RealDisk().lock({path!r}) is not None)"

    def other_process_gets_it() -> str:
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()

    lock = disk.lock(path)
    assert lock is not None
    assert other_process_gets_it() == "False"
    lock.release()
    assert other_process_gets_it() == "True"


def test_a_database_is_durable_and_in_autocommit_mode(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "database")
    connection = disk.open_database(path)
    assert connection.isolation_level is None
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    connection.execute("CREATE TABLE numbers (number)")
    connection.execute("INSERT INTO numbers VALUES (7)")
    connection.close()
    again = disk.open_database(path)
    assert again.execute("SELECT number FROM numbers").fetchall() == [(7,)]
    again.close()


def test_a_database_that_another_connection_is_creating_is_opened_when_it_is_ready(
    disk: RealDisk, tmp_path: Path
) -> None:
    path = str(tmp_path / "database")
    creator = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    creator.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(disk.open_database, path)
        with pytest.raises(TimeoutError):
            opening.result(timeout=0.2)
        creator.execute("COMMIT")
        connection = opening.result(timeout=60)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    creator.close()


def test_directories_are_reported_from_files(disk: RealDisk, tmp_path: Path) -> None:
    disk.replace_file(str(tmp_path / "file"), b"")
    assert [disk.is_directory(str(tmp_path / name)) for name in ("", "file", "missing")] == [True, False, False]


def test_on_macos_files_directories_and_databases_reach_the_platter(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_sync = 51
    synced = []
    monkeypatch.setattr(real_disk, "_FULL_SYNC", full_sync)
    monkeypatch.setattr(fcntl, "fcntl", lambda _, command: synced.append(command))
    file = disk.open(str(tmp_path / "file"), create=True)
    file.sync()
    disk.sync_directory(str(tmp_path))
    assert synced == [full_sync] * 2
    connection = disk.open_database(str(tmp_path / "database"))
    assert connection.execute("PRAGMA fullfsync").fetchone() == (1,)
    assert connection.execute("PRAGMA checkpoint_fullfsync").fetchone() == (1,)
    connection.close()


def test_a_file_system_that_knows_no_full_sync_gets_a_plain_one(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, command: int) -> None:
        raise OSError(errno.ENOTSUP, "no")

    synced: list[int] = []
    monkeypatch.setattr(real_disk, "_FULL_SYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    monkeypatch.setattr(os, "fsync", synced.append)
    disk.sync_directory(str(tmp_path))
    assert len(synced) == 1


MB = 1 << 20
SIZE_BYTES = 4 * MB


@pytest.fixture
def large_file(disk: RealDisk, tmp_path: Path) -> RealFile:
    file = disk.open(str(tmp_path / "large"), create=True)
    file.write_at(bytes(SIZE_BYTES), 0)
    file.sync()
    return file


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux drops a file from memory on request")
def test_forgotten_bytes_are_brought_into_memory(large_file: RealFile) -> None:
    """The kernel may drop pages at any moment, also those that were read just now: then they are read again."""
    os.posix_fadvise(large_file.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def read_and_look() -> bool:
        large_file.bring_into_memory(SIZE_BYTES, 0)
        positions = range(0, SIZE_BYTES, 1 << 16)
        return all(real_disk._is_in_memory(large_file.descriptor, position) for position in positions)

    eventually(read_and_look, seconds=10)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux drops a file from memory on request")
def test_a_file_tells_what_it_would_wait_for(large_file: RealFile) -> None:
    """The kernel keeps pages that it is still adding to its lists, so it is asked to drop them until it has."""
    assert large_file.is_in_memory(SIZE_BYTES, 0)

    def has_dropped_the_end() -> bool:
        os.posix_fadvise(large_file.descriptor, 2 * MB, 2 * MB, os.POSIX_FADV_DONTNEED)
        return not large_file.is_in_memory(SIZE_BYTES, 0)

    eventually(has_dropped_the_end, seconds=10)
    assert large_file.is_in_memory(2 * MB, 0)


def test_data_counts_as_cached_on_a_system_that_cannot_tell(
    large_file: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_disk, "_NO_WAIT", None)
    assert large_file.is_in_memory(SIZE_BYTES, 0)


@pytest.mark.parametrize("answer", [errno.EAGAIN, errno.EOPNOTSUPP])
def test_only_what_is_not_in_memory_is_read(large_file: RealFile, monkeypatch: pytest.MonkeyPatch, answer: int) -> None:
    read: list[tuple[int, int]] = []

    def probe(_descriptor: int, _buffers: object, position: int, _flags: int) -> int:
        if position < MB or 2 * MB <= position < 3 * MB - 1:
            return 1
        raise OSError(answer, os.strerror(answer))

    monkeypatch.setattr(os, "preadv", probe, raising=False)
    monkeypatch.setattr(real_disk, "_NO_WAIT", 8)
    monkeypatch.setattr(os, "pread", lambda _, size_bytes, position: read.append((size_bytes, position)))
    large_file.bring_into_memory(3 * MB + 100, 0)
    assert read == [(MB, MB), (MB, 2 * MB), (100, 3 * MB)]


def test_a_system_that_cannot_tell_reads_it_all(large_file: RealFile, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    monkeypatch.setattr(real_disk, "_NO_WAIT", None)
    monkeypatch.setattr(os, "pread", lambda _, size_bytes, _position: read.append(size_bytes))
    large_file.bring_into_memory(SIZE_BYTES, 0)
    assert sum(read) == SIZE_BYTES


def test_only_the_broker_reads_what_it_creates(disk: RealDisk, tmp_path: Path) -> None:
    directory = tmp_path / "new" / "logs"
    disk.make_directories(str(directory))
    disk.open(str(directory / "file"), create=True)
    disk.replace_file(str(directory / "checkpoint"), b"")
    assert disk.lock(str(directory / "lock")) is not None
    assert [path.stat().st_mode & 0o777 for path in (directory.parent, directory)] == [0o700] * 2
    assert [path.stat().st_mode & 0o777 for path in directory.iterdir()] == [0o600] * 3
    disk.make_directories(str(directory))
    with pytest.raises(FileExistsError):
        disk.make_directories(str(directory / "file"))


def test_a_file_that_is_created_is_not_that_of_a_link(disk: RealDisk, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    for name in ("checkpoint.tmp", "file", "lock", "database"):
        (tmp_path / name).symlink_to(victim)
    disk.replace_file(str(tmp_path / "checkpoint"), b"new")
    assert (tmp_path / "checkpoint").read_bytes() == b"new"
    for create in (
        lambda: disk.open(str(tmp_path / "file"), create=True),
        lambda: disk.lock(str(tmp_path / "lock")),
        lambda: disk.open_database(str(tmp_path / "database")),
    ):
        with pytest.raises(OSError, match="symbolic links"):
            create()
    assert victim.read_bytes() == b"kept"


def test_other_users_lose_access_to_what_an_older_version_has_created(
    disk: RealDisk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    modes = {"file": (0o644, 0o600), "of a group": (0o640, 0o640), "private": (0o400, 0o400)}
    modes |= {"directory": (0o2755, 0o2700), "shared": (0o1777, 0o1777)}
    for name, (mode, _) in modes.items():
        path = tmp_path / name
        path.mkdir() if stat.S_IMODE(mode) & 0o111 else path.touch()
        path.chmod(mode)
    victim = tmp_path / "victim"
    victim.touch(0o644)
    (tmp_path / "link").symlink_to(victim)
    for _ in range(2):
        disk.make_private(str(tmp_path / name) for name in (*modes, "link", "missing"))
    assert {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in modes} == {
        name: after for name, (_, after) in modes.items()
    }
    assert victim.stat().st_mode & 0o077
    assert [record.getMessage().count("lose access") for record in caplog.records] == [1]


def test_the_error_of_a_link_names_it_and_its_target(disk: RealDisk, tmp_path: Path) -> None:
    link, target = tmp_path / "audit.log", tmp_path / "audit-of-this-broker.log"
    target.touch()
    link.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links are not followed") as refused:
        disk.open(str(link), create=True)
    assert f"name {target} instead: '{link}'" in str(refused.value)
