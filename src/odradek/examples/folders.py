"""The folders of examples: those of the package, and any folder with the same files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGED = Path(__file__).parent
DEFINITION, SIMULATOR, VIEW, README = "pipeline.yml", "simulator.yml", "view.yml", "README.md"
NEEDED = (DEFINITION, SIMULATOR, VIEW)
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.db", "*.db-*", "checkpoints", "data", "warehouse")


class NoSuchExample(Failure):
    """There is no such example. The message says which there are, or what a folder lacks."""


@dataclass(frozen=True, slots=True)
class Example:
    name: str
    folder: Path

    @property
    def definition(self) -> str:
        return str(self.folder / DEFINITION)

    @property
    def simulator(self) -> str:
        return str(self.folder / SIMULATOR)

    @property
    def view(self) -> str:
        return str(self.folder / VIEW)

    @property
    def summary(self) -> str:
        """The first paragraph of the README below its title, in one line."""
        try:
            paragraphs = (self.folder / README).read_text().split("\n\n")
        except OSError:
            return ""
        return " ".join(next((each for each in paragraphs if not each.startswith("#")), "").split())


def packaged_examples() -> list[Example]:
    return [
        Example(folder.name, folder)
        for folder in sorted(PACKAGED.iterdir())
        if all((folder / name).is_file() for name in NEEDED)
    ]


def find_example(name: str) -> Example:
    """The packaged example of this name, or a folder. A name with a slash or a dot is a folder."""
    packaged = {example.name: example for example in packaged_examples()}
    if name in packaged:
        return packaged[name]
    folder = Path(name)
    if not folder.is_dir():
        raise NoSuchExample(f"there is no example '{name}' and no such folder; examples: {', '.join(packaged)}")
    missing = [each for each in NEEDED if not (folder / each).is_file()]
    if missing:
        raise NoSuchExample(f"{name} has no {' and no '.join(missing)}, which an example needs")
    return Example(folder.resolve().name, folder)


def copy_example(example: Example, target: Path, replaced: Mapping[str, str] | None = None) -> list[str]:
    """Copies the files of an example, with words replaced in them; returns their names."""
    shutil.copytree(example.folder, target, ignore=LEFT_OUT, dirs_exist_ok=True)
    files = sorted(path for path in target.rglob("*") if path.is_file())
    for path in files if replaced else ():
        text = path.read_text()
        for word, replacement in (replaced or {}).items():
            text = text.replace(word, replacement)
        path.write_text(text)
    return [str(path.relative_to(target)) for path in files]
