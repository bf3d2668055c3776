"""The wheel: what is in it, and that it works in an environment that has nothing but its locked dependencies.

The registry is not used: the environment gets the files of those distributions from the one that runs the tests, and no
others, so that an import of a development dependency fails here.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import urllib.request
import venv
import zipfile
from contextlib import contextmanager
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import odradek
from tests.deploy.deploy_files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOCKS = ROOT / "locks"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ODRADEK_"))}


def locked(name: str) -> dict[str, str]:
    """Versions by distribution, of those that this platform needs."""
    lines = re.findall(r"^(\S+==.*?)\s*\\$", (LOCKS / name).read_text(), re.MULTILINE)
    requirements = [Requirement(line) for line in lines]
    needed = [each for each in requirements if each.marker is None or each.marker.evaluate()]
    return {each.name: str(each.specifier).removeprefix("==") for each in needed}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source distribution; the wheel is built from the latter's files."""
    directory = tmp_path_factory.mktemp("dist")
    run("-m", "hatchling", "build", "-t", "sdist", "-d", str(directory), cwd=ROOT)
    (source,) = directory.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(directory, filter="data")
    (unpacked,) = [path for path in directory.iterdir() if path.is_dir()]
    run("-m", "hatchling", "build", "-t", "wheel", "-d", str(directory), cwd=unpacked)
    return directory


def run(*arguments: str, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`odradek`, installed from the wheel, without pipelines."""
    for name, version in locked("container.txt").items():
        found = importlib.metadata.version(name)
        assert found == version, f"{name}: locks/container.txt and locks/dev.txt differ"
    return installed(wheel, locked("container.txt"), tmp_path_factory.mktemp("environment"))


def required(requirement: Requirement) -> set[str]:
    """Names of the distributions that a requirement installs, without its own."""
    names: set[str] = set()
    for each in map(Requirement, importlib.metadata.requires(requirement.name) or ()):
        extras = requirement.extras or {""}
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras):
            names |= {canonicalize_name(each.name), *required(each)}
    return names


def installed(wheel: Path, distributions: Iterable[str], directory: Path) -> Path:
    """The program in an environment with the wheel and these distributions."""
    venv.create(directory, symlinks=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    for name in distributions:
        link_files(importlib.metadata.distribution(name), packages)
    run(
        "-m", "pip", "--disable-pip-version-check", "--python", str(directory / "bin" / "python"),
        "install", "--quiet", "--no-compile", "--no-deps", "--no-index", str(wheel), cwd=directory,
    )  # fmt: skip
    return directory / "bin" / "odradek"


def link_files(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    """Also those of bytecode, which pip makes: without it, each process of Spark compiles PySpark for over a second."""
    for file in distribution.files or ():
        if ".." not in file.parts:
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(distribution.locate_file(file))).resolve())


@pytest.mark.more
def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    (information,) = tops - {"odradek"}
    assert information.endswith(".dist-info")
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/odradek"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = {line.removeprefix("src/") for line in tracked.stdout.splitlines() if (ROOT / line).is_file()}
    assert {name for name in names if name.startswith("odradek/")} == files
    for asset in ("console/assets/", "console/templates/", "examples/rigs/", "py.typed"):
        assert any(name.startswith(f"odradek/{asset}") for name in names), asset


@pytest.mark.more
def test_the_metadata_of_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(archive.read(name).decode())
        points = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
        assert name.replace("METADATA", "licenses/LICENSE") in archive.namelist()
    assert (metadata["Name"], metadata["Version"]) == ("odradek", odradek.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    extras = {"cluster", "console", "pipelines", "postgresql", "security", "sql"}
    assert set(metadata.get_all("Provides-Extra") or ()) == extras
    assert "odradek = odradek.__main__:main" in points
    assert "odradek = odradek.testing.plugin" in points


@pytest.mark.more
def test_the_source_distribution_has_what_the_tests_need(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        tops = {name.split("/")[1] for name in archive.getnames()}
    assert {"src", "tests", "docs", "deploy", "locks", "Makefile", "pyproject.toml", "LICENSE"} <= tops
    assert not tops & {"build", "dist", ".venv"}


@contextmanager
def started(*command: str | Path) -> Iterator[dict[str, Any]]:
    """The first line of the output, an object. SIGTERM at the end."""
    words = [str(each) for each in command]
    with subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, f"{words} ended with exit code {process.wait(60)}"
            yield json.loads(line)
        finally:
            process.terminate()
            process.wait(60)


@pytest.mark.more
def test_it_works_in_an_empty_environment(program: Path, tmp_path: Path) -> None:
    def odradek(*arguments: str, given: str = "") -> str:
        done = subprocess.run(
            [program, *arguments],
            input=given, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert odradek("--version").startswith("odradek 0.")
    data = tmp_path / "data"
    broker: list[str | Path] = [program, "broker", "--format=json", "--override=listeners=PLAINTEXT://127.0.0.1:0"]
    with started(*broker, f"--override=log.dirs={data}") as ready:
        (endpoint,) = ready["endpoints"]
        address = f"{endpoint['host']}:{endpoint['port']}"
        odradek("topic", "create", "greetings", "-b", address)
        odradek("produce", "greetings", "-b", address, given="hello, world\n")
        assert "hello, world" in odradek("consume", "greetings", "--from-beginning", "--until-end", "-b", address)
        with started(program, "console", "-b", address, "--listen=127.0.0.1:0", "--format=json") as console:
            page = fetch(console["console"])
            assert "Overview" in page
            assets = sorted(set(re.findall(r'(?:src|href)="(/assets/[^"]+)"', page)))
            assert len(assets) >= 3
            for asset in assets:
                assert len(fetch(console["console"].rstrip("/") + asset)) > 100
    refused = subprocess.run(
        [program, "up", "--seconds", "1"], env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 1
    assert "pip install 'odradek[pipelines]'" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_flagship_warns_of_silent_pumps(wheel: Path, tmp_path: Path) -> None:
    """The functions of the example are in the package's own folder, and reach the workers of Spark. A pump reports once
    a minute, and is silent after half of it."""
    needed = required(Requirement("odradek[console,security,cluster,pipelines]"))
    program = installed(wheel, needed, tmp_path / "environment")
    command = [str(program), "up", "--port=0", "--rate=5", "--no-console", "--format=json"]
    errors = tmp_path / "errors"
    with errors.open("w") as file, subprocess.Popen(
        command, env=ENVIRONMENT, cwd=tmp_path, stdout=subprocess.PIPE, stderr=file, text=True
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            rows = map(json.loads, process.stdout)
            for row in rows:
                if row["kind"] == "progress" and row["states"]["silent"]:
                    process.send_signal(signal.SIGINT)
                    break
                assert "failed" not in errors.read_text()
            summary = list(rows)[-1]
            process.wait()
        finally:
            process.kill()
            print(errors.read_text())  # pytest shows it if the test fails
    assert process.returncode == 0
    assert summary["kind"] == "summary"
    assert summary["records"]["warnings"] > 0
    assert summary["records"]["pressure"] > 0
    assert "failed" not in errors.read_text()


def fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as response:
        text: str = response.read().decode()
        return text


def test_the_locks_agree_with_each_other() -> None:
    every = locked("dev.txt")
    for name in ("runtime.txt", "container.txt", "build.txt"):
        versions = locked(name)
        assert {each: every.get(each) for each in versions} == versions, name
    assert set(locked("runtime.txt")) < set(locked("container.txt"))
