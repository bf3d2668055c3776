"""`include:` of a definition: the parts of a pipeline in several YAML files.

Sections are merged by name. Every value keeps its place, so that errors belong to its own file. Relative paths start at
the folder of their file, too, and are read as if they were written in the definition's. Only the environment is
available in `include` itself, because parameters may be declared in an included file.
"""

from __future__ import annotations

import glob
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar, describe, shortened
from odradek.pipelines.definition.substituting import Substitution
from odradek.pipelines.definition.yaml_nodes import read_raw_yaml, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.pipelines.definition.places import Problems

    Entries = dict[str, tuple[Scalar, Node]]

MERGED = frozenset({"sources", "steps", "sinks", "views", "functions", "parameters", "profiles", "kafka", "spark"})
HINT = "write include: [sources.yml, more/*.yml]"
SQLITE = ("jdbc:sqlite:", "sqlite:///")
RELATIVE = "relative paths start at the folder of the file that includes it"


def with_includes(root: MappingNode, environment: Mapping[str, str], problems: Problems) -> MappingNode:
    """The definition together with the files that it includes, and without `include`."""
    if root.get("include") is None:
        return root
    return Inclusion(environment, problems).merged(root)


class Inclusion:
    """Merges the files of one definition; a file that is included twice counts once."""

    def __init__(self, environment: Mapping[str, str], problems: Problems) -> None:
        self._environment = environment
        self._problems = problems
        self._read: set[Path] = set()

    def merged(self, root: MappingNode) -> MappingNode:
        entries: Entries = {}
        for part in self._parts(root, (root.place.file,)):
            for key, value in part.entries:
                if key.text != "include":
                    self._add(entries, key, value)
        return MappingNode(tuple(entries.values()), root.place)

    def _parts(self, root: MappingNode, chain: tuple[str, ...]) -> Iterator[MappingNode]:
        """The file itself, then the files that it includes."""
        yield root
        node = root.get("include")
        if node is None:
            return
        listed = Substitution({}, self._environment, self._problems).of(node)
        for item in listed.items if isinstance(listed, ListNode) else (listed,):
            if not isinstance(item, Scalar) or not isinstance(item.value, str) or not item.value:
                self._problems.error(item.place, f"include must be a list of files, not {describe(item)}", HINT)
                continue
            for file in self._files(item):
                yield from self._included(item, file, chain)

    def _files(self, item: Scalar) -> list[str]:
        path = str(Path(item.place.file).parent / item.text)
        if not glob.has_magic(item.text):
            return [path]
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            self._problems.error(item.place, f"no file matches '{shortened(item.text)}'", RELATIVE)
        return found

    def _included(self, item: Scalar, file: str, chain: tuple[str, ...]) -> Iterator[MappingNode]:
        path = Path(file).resolve()
        if path in (Path(each).resolve() for each in chain):
            cycle = " → ".join(Path(each).name for each in (*chain, file))
            self._problems.error(item.place, f"the file includes itself: {cycle}", "remove one of the includes")
            return
        if path in self._read:
            return
        self._read.add(path)
        if not path.is_file():
            self._problems.error(item.place, f"the included file {file} does not exist", RELATIVE)
            return
        text = read_text(file, self._problems)
        part = None if text is None else read_raw_yaml(text, file, self._problems)
        if isinstance(part, MappingNode):
            yield from self._parts(part, (*chain, file))
        elif part is not None:
            self._problems.error(part.place, f"an included file must be a mapping, not {describe(part)}")

    def _add(self, entries: Entries, key: Scalar, value: Node) -> None:
        first = entries.get(key.text)
        if first is None:
            entries[key.text] = (key, value)
            return
        before = first[1]
        if key.text not in MERGED or not isinstance(before, MappingNode) or not isinstance(value, MappingNode):
            hint = "the file that includes others names the pipeline" if key.text == "pipeline" else "keep one of them"
            self._problems.error(key.place, f"{shortened(key.text)} is already set in {first[0].place}", hint)
            return
        names: Entries = {name.text: (name, each) for name, each in before.entries}
        for name, each in value.entries:
            if name.text in names:
                there = names[name.text][0].place
                message = f"'{shortened(name.text)}' of {key.text} is already declared in {there}"
                self._problems.error(name.place, message, "keep one of them, or rename one")
            else:
                names[name.text] = (name, each)
        entries[key.text] = (first[0], MappingNode(tuple(names.values()), before.place))


def relocated(text: str, file: str, folder: Path | None, *, is_url: bool) -> str:
    """A path, or the URL of a file, as it is written from the definition's folder."""
    here = Path(file).parent.absolute()
    prefix = next((each for each in SQLITE if text.startswith(each)), "") if is_url else ""
    rest = text.removeprefix(prefix)
    is_elsewhere = is_url and (not prefix or rest.startswith((":", "file:")))
    if folder in {None, here} or is_elsewhere or "://" in rest or not rest or Path(rest).is_absolute():
        return text
    return prefix + posixpath.join(posixpath.relpath(here, folder), rest)
