"""No module imports itself through others, not even for type checking: each file can be read before those above it."""

from __future__ import annotations

import ast
import graphlib
from typing import TYPE_CHECKING

from tests.house.test_tidy import SOURCE, trees

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def dotted_name(module: Path) -> str:
    return ".".join(("odradek", *module.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def imports_of(tree: ast.AST, known: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in known:
                    yield submodule
                elif node.module in known:
                    yield node.module


def test_there_are_no_import_cycles() -> None:
    modules = {dotted_name(module): tree for module, tree in trees().items()}
    graph = {name: set(imports_of(tree, set(modules))) for name, tree in modules.items()}
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names the modules of a cycle
