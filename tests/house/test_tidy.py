"""The house rules that a machine can check, as a test: sizes, names, imports, doors to the outside world, leftovers."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "odradek"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

LARGEST_MODULE_LINES = 500
ONLY_SENT = {"describe_quorum"}  # by clients, to brokers of Apache Kafka
LARGEST_FUNCTION_LINES = 70
UNROLLED = {
    "protocol/records.py: read_fields"
}  # a call for each field of a record doubles the time of `odradek consume`
NAMELESS_ROOMS = {"utils", "util", "helpers", "helper", "common", "misc", "core", "manager", "managers"}

# Only host/ opens these doors; the command line, the test kit, pipelines, their examples, the console and the process's
# own main are outside the broker.
OUTSIDE_WORLD = {"time", "random", "secrets", "socket", "threading", "subprocess", "os", "fcntl", "tempfile", "shutil"}
DOORS = (
    "host/",
    "cli/",
    "admin/",
    "local/",
    "conventions/private_files.py",
    "deferred.py",  # part of the import system
    "testing/",
    "pipelines/",
    "console/",
    "examples/",
    "server/main.py",
)


@cache
def trees() -> dict[Path, ast.Module]:
    return {module: ast.parse(text_of(module)) for module in MODULES}


@cache
def statements() -> dict[Path, list[ast.stmt]]:
    """All statements of each module, those within others included."""
    return {module: list(statements_within(tree)) for module, tree in trees().items()}


def statements_within(node: ast.AST) -> Iterator[ast.stmt]:
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, name, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from statements_within(child)


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@cache
def text_of(path: Path) -> str:
    return path.read_text()


def tracked_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / line for line in listing.stdout.splitlines() if (ROOT / line).is_file()]


def imported_modules(nodes: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def test_modules_are_small_and_say_what_they_are_for() -> None:
    long = {
        name_of(module): len(lines)
        for module in MODULES
        if len(lines := text_of(module).splitlines()) > LARGEST_MODULE_LINES
    }
    silent = [name_of(module) for module, tree in trees().items() if tree.body and not ast.get_docstring(tree)]
    assert not long, f"split by noun what has more than {LARGEST_MODULE_LINES} lines"
    assert not silent, "a module's docstring says what it is for"


def test_functions_fit_a_screen() -> None:
    long = [
        f"{name_of(module)}: {node.name}"
        for module, nodes in statements().items()
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > LARGEST_FUNCTION_LINES
    ]
    assert set(long) == UNROLLED


def test_rooms_and_modules_have_names_of_their_own() -> None:
    parts = {part.removesuffix(".py").strip("_") for module in MODULES for part in module.relative_to(SOURCE).parts}
    assert not parts & NAMELESS_ROOMS


def test_only_the_host_touches_the_outside_world() -> None:
    found = {
        name_of(module): doors
        for module, nodes in statements().items()
        if not name_of(module).startswith(DOORS) and (doors := imported_modules(nodes) & OUTSIDE_WORLD)
    }
    assert not found


def test_there_are_no_import_cycles() -> None:
    """Not even for type checking: each file can be read before those above it."""
    modules = {dotted_name(module): nodes for module, nodes in statements().items()}
    graph = {name: set(imports_of(nodes, set(modules))) for name, nodes in modules.items()}
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names the modules of a cycle


def test_packages_and_modules_of_a_room_import_each_other_in_one_direction() -> None:
    """A package counts as one node among its siblings: it can be read before those that import any part of it."""
    modules = {dotted_name(module): nodes for module, nodes in statements().items()}
    siblings: dict[str, dict[str, set[str]]] = {}
    for name, nodes in modules.items():
        for imported in imports_of(nodes, set(modules)):
            room, importer, target = first_difference(name, imported)
            siblings.setdefault(room, {}).setdefault(importer, set()).add(target)
    for graph in siblings.values():
        graphlib.TopologicalSorter(graph).prepare()  # CycleError names the packages and modules of a cycle


def first_difference(name: str, other: str) -> tuple[str, str, str]:
    """The nearest package of two modules, and what each is in it: (a.b.c, a.b.d.e) → (a.b, c, d)."""
    parts, other_parts = [*name.split("."), ""], [*other.split("."), ""]
    depth = next(index for index, pair in enumerate(zip(parts, other_parts, strict=False)) if pair[0] != pair[1])
    return ".".join(parts[:depth]), parts[depth], other_parts[depth]


def test_contracts_name_modules_that_exist() -> None:
    """A module that is renamed must not leave its contract."""
    contracts = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    known = {dotted_name(module) for module in MODULES}
    named = {
        name
        for contract in contracts
        for key in ("source_modules", "forbidden_modules", "containers")
        for name in contract.get(key, ())
        if name.startswith("odradek")
    }
    assert named
    assert not named - known


def dotted_name(module: Path) -> str:
    return ".".join(("odradek", *module.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def imports_of(nodes: list[ast.stmt], known: set[str]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in known:
                    yield submodule
                elif node.module in known:
                    yield node.module


def test_there_is_one_file_per_api_and_each_is_registered() -> None:
    from odradek.handlers.registry import build_cluster_registry

    tables = {path.stem for path in (SOURCE / "protocol" / "messages").glob("*.py")} - {"__init__"}
    apis = {re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower() for api in build_cluster_registry().values()}
    assert tables - ONLY_SENT == apis
    for name in apis:
        assert (SOURCE / "handlers" / f"{name}.py").is_file()


def test_tests_wait_for_conditions_instead_of_sleeping() -> None:
    sleeps = re.compile(r"time\.sleep\(|asyncio\.sleep\((?!0\))")
    marks = re.compile("# a poll's pause|# a measured time")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in TESTS
        if sleeps.search(text_of(path))
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if sleeps.search(line) and not marks.search(line) and path != Path(__file__)
    ]
    assert not found, (
        "await the condition; mark the pause of a bounded poll with `# a poll's pause`, and a time that is itself what "
        "is measured, shown or attacked with, with `# a measured time`"
    )


def test_no_tracked_file_names_this_machine() -> None:
    local_path = re.compile(r"(?<![\w./-])/(?:work|root|home)/[A-Za-z]")
    found = []
    for path in tracked_files():
        try:
            text = text_of(path)
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}"] if local_path.search(text) else []
    assert not found


def test_nothing_outside_the_checkout_is_read() -> None:
    beside = re.compile(r"ROOT\.parent\b|\.\./shared")
    sources = [
        path for path in tracked_files() if path.suffix in {".py", ".toml", ".sh", ""} or path.name == "Makefile"
    ]
    found = [path.relative_to(ROOT) for path in sources if path != Path(__file__) and beside.search(text_of(path))]
    assert not found


def test_every_silenced_check_says_why() -> None:
    """`# noqa: RULE - reason`; a reason given once in a file serves the same rule below it."""
    found = []
    for path in (path for path in [*MODULES, *TESTS] if "noqa" in text_of(path)):
        explained: set[str] = set()
        for number, line in enumerate(text_of(path).splitlines(), 1):
            silenced = re.search(r"#\s*noqa:\s*([A-Z0-9]+)(.*)", line)
            if silenced is None:
                continue
            rule, rest = silenced.groups()
            if " - " in rest:
                explained.add(rule)
            elif rule not in explained:
                found.append(f"{path.relative_to(ROOT)}:{number}")
    assert not found


def test_every_ignored_type_error_says_why() -> None:
    """`# type: ignore[code]  # reason`; a reason given once in a module serves the same code below it."""
    found = []
    for path in (path for path in [*MODULES, *TESTS] if "type: ignore" in text_of(path)):
        explained: set[str] = set()
        for number, line in enumerate(text_of(path).splitlines(), 1):
            ignored = re.search(r"# type: ignore\[([^\]]+)\](.*)", line)
            if ignored is None:
                continue
            code, rest = ignored.groups()
            if re.search(r"#\s*(?!noqa)\S|noqa.* - ", rest):
                explained.add(code)
            elif code not in explained:
                found.append(f"{path.relative_to(ROOT)}:{number}")
    assert not found
