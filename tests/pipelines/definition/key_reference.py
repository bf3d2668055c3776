"""The reference of the keys of a definition, `docs/keys.md`, made of `keys`.

python -m tests.pipelines.definition.key_reference > docs/keys.md
"""

from __future__ import annotations

import sys

from odradek.pipelines.definition.keys import PIPELINE, Key, Kind

HEAD = """# Keys of a pipeline

Every key of a [definition](pipelines.md), in YAML and as keyword arguments in Python. This page is made of the schema
by which definitions are parsed; `odradek pipeline schema` prints it as a JSON Schema for editors.
"""


def reference() -> str:
    titles: dict[tuple[Key, ...], str] = {}
    found: list[Key] = []

    def collect(key: Key, owner: str) -> None:
        """Keys that are in several mappings are described once."""
        if key.keys and key.keys not in titles:
            title = f"`{key.name}`" if key.name else "The pipeline"
            titles[key.keys] = f"{title} of `{owner}`" if title in titles.values() else title
            found.append(key)
            for each in key.keys:
                collect(each, key.name)

    collect(PIPELINE, "")
    return "\n".join([HEAD, *(section(key, titles) for key in found)])


def section(key: Key, titles: dict[tuple[Key, ...], str]) -> str:
    lines = [f"## {titles[key.keys]}", "", *([f"One of {listed(key.one_of)}.", ""] if key.one_of else [])]
    lines += ["| key | value | |", "|---|---|---|"]
    for each in key.keys:
        is_chosen = each.name in key.one_of
        needed = f"With {listed(each.owners)}. " if each.owners and not is_chosen else ""
        mark = " (required)" if each.required and not is_chosen else ""
        lines.append(f"| `{each.name}`{mark} | {value(each, titles)} | {needed}{escaped(each.description)} |")
    return "\n".join([*lines, ""])


def value(key: Key, titles: dict[tuple[Key, ...], str]) -> str:
    words = " ".join(f"`{each}`" for each in key.words)
    if key.keys:
        anchor = titles[key.keys].replace("`", "").replace(" ", "-")
        return f"[{key.kind}](#{anchor})"
    return words if key.kind is Kind.WORD else f"{key.kind} or {words}" if words else str(key.kind)


def listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(reference())
