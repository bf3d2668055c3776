"""The house rules that a machine can check, as a test: sizes, names, doors to the outside world, leftovers."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "odradek"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

LARGEST_MODULE_LINES = 400
LARGEST_FUNCTION_LINES = 70
NAMELESS_ROOMS = {"utils", "util", "helpers", "helper", "common", "misc", "core", "manager", "managers"}

# Only host/ opens these doors; the command line, the test kit and the process's own main are outside the broker.
OUTSIDE_WORLD = {"time", "random", "secrets", "socket", "threading", "subprocess", "os", "fcntl", "tempfile", "shutil"}
DOORS = ("host/", "cli/", "testing/", "server/main.py")


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def tracked_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / line for line in listing.stdout.splitlines() if (ROOT / line).is_file()]


def imported_modules(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_are_small_and_say_what_they_are_for(module: Path) -> None:
    text = module.read_text()
    assert len(text.splitlines()) <= LARGEST_MODULE_LINES
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "a module's docstring says what it is for"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_functions_fit_a_screen(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= LARGEST_FUNCTION_LINES, f"{node.name} has {lines} lines"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_rooms_and_modules_have_names_of_their_own(module: Path) -> None:
    parts = {part.removesuffix(".py").strip("_") for part in module.relative_to(SOURCE).parts}
    assert not parts & NAMELESS_ROOMS


@pytest.mark.parametrize("module", [m for m in MODULES if not name_of(m).startswith(DOORS)], ids=name_of)
def test_only_the_host_touches_the_outside_world(module: Path) -> None:
    assert not imported_modules(ast.parse(module.read_text())) & OUTSIDE_WORLD


def test_there_is_one_file_per_api_and_each_is_registered() -> None:
    from odradek.handlers.registry import build_registry

    tables = {path.stem for path in (SOURCE / "protocol" / "messages").glob("*.py")} - {"__init__"}
    apis = {re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower() for api in build_registry().values()}
    assert tables == apis
    for name in apis:
        assert (SOURCE / "handlers" / f"{name}.py").is_file()


def test_tests_wait_for_conditions_instead_of_sleeping() -> None:
    sleeps = re.compile(r"time\.sleep\(|asyncio\.sleep\((?!0\))")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in TESTS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if sleeps.search(line) and "a poll's pause" not in line and path != Path(__file__)
    ]
    assert not found, "await the condition, or mark the pause of a bounded poll with `# a poll's pause`"


def test_no_tracked_file_names_this_machine() -> None:
    local_path = re.compile(r"(?<![\w./-])/(?:work|root|home)/[A-Za-z]")
    found = []
    for path in tracked_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}" for line in text.splitlines() if local_path.search(line)]
    assert not found


def test_every_silenced_check_says_why() -> None:
    """`# noqa: RULE - reason`; a reason given once in a file serves the same rule below it."""
    found = []
    for path in [*MODULES, *TESTS]:
        explained: set[str] = set()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            silenced = re.search(r"#\s*noqa:\s*([A-Z0-9]+)(.*)", line)
            if silenced is None:
                continue
            rule, rest = silenced.groups()
            if " - " in rest:
                explained.add(rule)
            elif rule not in explained:
                found.append(f"{path.relative_to(ROOT)}:{number}")
    assert not found
