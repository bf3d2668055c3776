"""Which epoch a broker names when it registers again: none, if one of its log directories may have lost records."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from odradek.host.host import Host
from odradek.log.log_directory import LogDirectory
from odradek.server.last_registration import FILE_NAME, read_previous_epochs, write_epochs
from tests.simulation.simulated_host import Simulation

PATHS = ("/a", "/b")
EPOCHS = (4, 7)


class Scene:
    """A broker that has run with two log directories, and has been killed."""

    def __init__(self) -> None:
        self.simulation = Simulation(1)
        self.host: Host = replace(self.simulation.host, boot_id="first boot")
        directories = self.open(*PATHS)
        write_epochs(directories, self.host, EPOCHS)
        self.close(directories)

    def open(self, *paths: str) -> list[LogDirectory]:
        return [LogDirectory.open(path, self.host, cluster_id="c", node_id=1) for path in paths]

    @staticmethod
    def close(directories: list[LogDirectory], *, is_clean: bool = False) -> None:
        for directory in directories:
            directory.close(is_clean=is_clean)

    def previous_epochs(self, *paths: str) -> Sequence[int]:
        directories = self.open(*(paths or PATHS))
        found = read_previous_epochs(directories, self.host)
        self.close(directories)
        return found

    def files(self, path: str) -> dict[str, bytes]:
        disk = self.host.disk
        return {name: disk.read_file(f"{path}/{name}") for name in disk.list_directory(path) if name != ".lock"}

    def replace_files(self, path: str, files: dict[str, bytes]) -> None:
        for name in self.files(path):
            self.host.disk.remove(f"{path}/{name}")
        for name, content in files.items():
            self.host.disk.replace_file(f"{path}/{name}", content)


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.simulation.close()


def test_a_killed_broker_has_lost_nothing_within_one_boot(scene: Scene) -> None:
    assert scene.previous_epochs() == EPOCHS


def test_after_another_boot_only_a_clean_shutdown_has_lost_nothing(scene: Scene) -> None:
    scene.host = replace(scene.host, boot_id="second boot")
    assert scene.previous_epochs() == ()
    scene.close(scene.open(*PATHS), is_clean=True)
    assert scene.previous_epochs() == EPOCHS


@pytest.mark.parametrize("path", PATHS)
def test_an_emptied_directory_has_lost_records(scene: Scene, path: str) -> None:
    scene.replace_files(path, {})
    assert scene.previous_epochs() == ()


@pytest.mark.parametrize("path", PATHS)
def test_an_older_copy_of_a_directory_has_lost_records(scene: Scene, path: str) -> None:
    older = scene.files(path)
    directories = scene.open(*PATHS)
    write_epochs(directories, scene.host, [*EPOCHS, EPOCHS[-1] + 1])
    scene.close(directories)
    assert scene.previous_epochs() == (*EPOCHS, EPOCHS[-1] + 1)
    scene.replace_files(path, older)
    assert scene.previous_epochs() == ()


@pytest.mark.parametrize("path", PATHS)
def test_a_directory_that_is_not_used_any_more_has_lost_records(scene: Scene, path: str) -> None:
    assert scene.previous_epochs(path) == ()


def test_a_failed_directory_has_lost_records(scene: Scene) -> None:
    (first,) = scene.open("/a")
    failed = LogDirectory.unusable("/b", scene.host, "Input/output error")
    assert read_previous_epochs([first, failed], scene.host) == ()


def test_a_new_directory_and_another_order_lose_nothing(scene: Scene) -> None:
    assert scene.previous_epochs("/b", "/c", "/a") == EPOCHS


@pytest.mark.parametrize(
    "spoil", [lambda _: b"", lambda _: b"[]", lambda content: content.replace(b"broker_epoch", b"epoch")]
)
def test_an_unreadable_file_counts_as_none(scene: Scene, spoil: Callable[[bytes], bytes]) -> None:
    for path in PATHS:
        scene.host.disk.replace_file(f"{path}/{FILE_NAME}", spoil(scene.host.disk.read_file(f"{path}/{FILE_NAME}")))
    assert scene.previous_epochs() == ()


def test_the_file_of_an_earlier_version_names_its_own_directory_only(scene: Scene) -> None:
    scene.replace_files("/b", {})
    content = b'{"broker_epoch": 7, "boot_id": "first boot"}'
    scene.host.disk.replace_file(f"/a/{FILE_NAME}", content)
    assert scene.previous_epochs("/a") == EPOCHS[-1:]
