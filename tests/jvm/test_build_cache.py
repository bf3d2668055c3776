"""A build runs once, again when its sources change or it failed, and is never used half done."""

import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.jvm import build_cache
from tests.jvm.build_cache import build_once


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build_cache, "announcing", nullcontext)
    file = tmp_path / "source"
    file.write_text("one")
    return file


def test_concurrent_callers_get_one_build(tmp_path: Path, source: Path) -> None:
    built: list[Path] = []
    threads = [threading.Thread(target=build_once, args=(tmp_path / "built", [source], built.append)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [tmp_path / "built"]


def test_a_build_says_what_it_prepares_and_how_long_it_took(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        build_once(tmp_path / "built", [source], lambda _directory: None)
    assert capsys.readouterr().err.split("\n\n") == [
        f"\npreparing {tmp_path}/built, once for this machine",
        f"prepared {tmp_path}/built in 0 s\n",
    ]


def test_changed_source_is_built_again(tmp_path: Path, source: Path) -> None:
    def build(directory: Path) -> None:
        (directory / "result").write_text(source.read_text())

    build_once(tmp_path / "built", [source], build)
    source.write_text("two")
    assert (build_once(tmp_path / "built", [source], build) / "result").read_text() == "two"


def test_failed_build_is_tried_again(tmp_path: Path, source: Path) -> None:
    def fail(directory: Path) -> None:
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        build_once(tmp_path / "built", [source], fail)
    built: list[Path] = []
    build_once(tmp_path / "built", [source], built.append)
    assert len(built) == 1
