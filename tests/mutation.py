"""Plants random faults in the broker's rooms and counts those that the tests find: `python -m tests.mutation --seed 1`.

A fault changes one line of a function: a comparison, a number, a condition, a return value, or a statement that is
dropped. One run with coverage, kept in `build/mutation`, says which tests run each line. The tests are collected once;
then a fork of this process for each fault replaces the code of the function and runs the tests of the line, those of
the mirrored file first, until one fails. A seed draws the same faults as long as their lines stand, so that versions of
the tests can be compared.
"""

import argparse
import ast
import contextlib
import gc
import hashlib
import importlib
import os
import resource
import select
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest
from coverage import CoverageData

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "mutation" / "coverage"
ROOMS = (
    "protocol", "metrics", "host", "client", "security", "log", "configuration", "metadata", "controller", "replica",
    "coordinator", "telemetry", "handlers", "server",
)  # fmt: skip
WHOLE_BROKERS = ("replication", "transactions", "cluster", "simulation")
MOST_TESTS = 30
PROCESSOR_LIMIT_S, LIMIT_S = 20, 300  # of the tests of one fault
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
LOGS = ("log.", "_log.", "logger.", "_logger.", "self._log.", "super().__init__")


class Fault(NamedTuple):
    path: str
    function: str
    kind: str
    line: int
    start: int
    end: int
    text: str
    key: str


def replacements(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """What can be wrong at a node: the part that is replaced, the kind of fault, and the wrong text."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPPOSITES:
        wrong = ast.Compare(node.left, [OPPOSITES[type(node.ops[0])](), *node.ops[1:]], node.comparators)
        yield node, "comparison", f"({ast.unparse(wrong)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield node, "constant", repr(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node.test, "condition", f"(not ({ast.unparse(node.test)}))"
    elif isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
        yield node.value, "return", "None"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        if not ast.unparse(node.value).startswith(LOGS):
            yield node, "statement", "pass"
    elif isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    ):
        yield node, "statement", "pass"


def nodes_of_functions(node: ast.AST, name: str = "", is_inside: bool = False) -> Iterator[tuple[ast.AST, str]]:
    """All nodes in functions but annotations, defaults and assertions, with the name of the outermost function."""
    if is_inside:
        yield node, name
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        name, is_inside = f"{name}.{node.name}".lstrip("."), not isinstance(node, ast.ClassDef)
    for field, value in ast.iter_fields(node):
        if field not in {"annotation", "returns", "decorator_list", "args"} or isinstance(node, ast.Call):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.Assert | ast.Raise):
                    yield from nodes_of_functions(child, name, is_inside)


def faults_of(source: Path) -> Iterator[Fault]:
    text, path = source.read_bytes(), source.relative_to(ROOT).as_posix()
    starts = [0]
    for row in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    seen: Counter[str] = Counter()
    for node, function in nodes_of_functions(ast.parse(text)):
        for part, kind, wrong in replacements(node):
            start = starts[part.lineno - 1] + part.col_offset
            end = starts[(part.end_lineno or part.lineno) - 1] + (part.end_col_offset or 0)
            same = f"{path} {function} {kind} {text[start:end].decode()}"
            seen[same] += 1
            yield Fault(path, function, kind, part.lineno, start, end, wrong, f"{same} {seen[same]}")


def drawn_faults(seed: int, count: int) -> list[Fault]:
    """One fault for a line; a fault's chance is its own, whatever stands in other lines."""
    chosen: dict[tuple[str, int], tuple[str, Fault]] = {}
    for room in ROOMS:
        for source in sorted((ROOT / "src/odradek" / room).rglob("*.py")):
            for fault in faults_of(source):
                ranked = hashlib.sha256(f"{seed} {fault.key}".encode()).hexdigest(), fault
                chosen[fault.path, fault.line] = min(ranked, chosen.get((fault.path, fault.line), ranked))
    return [fault for _, fault in sorted(chosen.values())[:count]]


def function_code(fault: Fault) -> CodeType:
    right = (ROOT / fault.path).read_bytes()
    wrong = right[: fault.start] + fault.text.encode() + right[fault.end :]
    codes = [compile(wrong, str(ROOT / fault.path), "exec")]
    for code in codes:
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    return next(code for code in codes if code.co_qualname == fault.function)


def tests_of(faults: list[Fault]) -> list[list[str]]:
    """For each fault at most MOST_TESTS: those of the mirrored file, then a share of each other file, nearest first."""
    if not KEPT.exists():
        folders = [f"tests/{name}" for name in (*ROOMS, *WHOLE_BROKERS)]
        options = ["-q", "--cov=odradek", "--cov-context=test", "--cov-report="]
        command = [sys.executable, "-m", "pytest", *options, *folders]
        subprocess.run(command, env=os.environ | {"COVERAGE_FILE": str(KEPT)}, check=False)
    data = CoverageData(str(KEPT))
    data.read()
    measured = {name[name.rindex("src/odradek/") :]: name for name in data.measured_files()}
    contexts = {path: data.contexts_by_lineno(measured.get(path, "")) for path in {fault.path for fault in faults}}
    chosen = []
    for fault in faults:
        mirrored = Path(fault.path.replace("src/odradek", "tests", 1))
        own = str(mirrored.with_name(f"test_{mirrored.name}"))
        order = own, f"{mirrored.parent}/", "/".join(mirrored.parts[:2])
        tests = {context.rpartition("|")[0] for context in contexts[fault.path].get(fault.line, ()) if context}
        by_file: defaultdict[str, list[str]] = defaultdict(list)
        for test in sorted(tests, key=lambda test: (*(not test.startswith(start) for start in order), test)):
            by_file[test.partition("::")[0]].append(test)
        share = max(2, MOST_TESTS // max(1, len(by_file)))
        ranked = [test for file, found in by_file.items() for test in found[: None if file == own else share]]
        chosen.append(ranked[:MOST_TESTS])
    return chosen


class Run:
    """A plugin of pytest: instead of running the tests it runs, for each fault, those that may find it."""

    def __init__(self, faults: list[Fault], tests: list[list[str]]) -> None:
        self._faults, self._tests, self._failed = faults, tests, ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for path in {fault.path for fault in self._faults}:  # a broker imports its handlers when it needs them
            importlib.import_module(path.removeprefix("src/").removesuffix(".py").replace("/", "."))
        gc.unfreeze()
        functions: defaultdict[tuple[str, str], list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                functions[each.__code__.co_filename, each.__code__.co_qualname].append(each)
        gc.freeze()
        verdicts: Counter[str] = Counter()
        for fault, names in zip(self._faults, self._tests, strict=True):
            tests = [items[name] for name in names if name in items]
            found = self._verdict(fault, tests, functions[str(ROOT / fault.path), fault.function])
            verdicts[found.partition(" by ")[0]] += 1
            print(f"{found}\t{fault.path}:{fault.line} {fault.kind}: {' '.join(fault.text.split())[:90]}", flush=True)
        print(", ".join(f"{count} {name}" for name, count in verdicts.most_common()), "of", len(self._faults))
        return True

    def _verdict(self, fault: Fault, tests: list[pytest.Item], functions: list[FunctionType]) -> str:
        if not tests or not functions:
            return "NOT RUN"
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_LIMIT_S, PROCESSOR_LIMIT_S))
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            for function in functions:
                function.__code__ = function_code(fault)
            for test, following in zip(tests, [*tests[1:], None], strict=True):
                test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
                if self._failed:
                    break
            os.write(writer, f"found by {self._failed}".encode() if self._failed else b"NOT FOUND")
            os._exit(0)
        os.close(writer)
        ready, _, _ = select.select([reader], [], [], LIMIT_S)
        found = os.read(reader, 10_000).decode() if ready else ""
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return found or "time limit"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    chosen = parser.parse_args()
    faults = drawn_faults(chosen.seed, chosen.count)
    tests = tests_of(faults)
    files = {ROOT / test.partition("::")[0] for names in tests for test in names}
    existing = sorted(str(file) for file in files if file.exists())
    pytest.main(["-q", "-s", "-n", "0", "-p", "no:randomly", *existing], plugins=[Run(faults, tests)])


if __name__ == "__main__":
    main()
