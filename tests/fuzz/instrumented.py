"""Which modules atheris instruments."""

from __future__ import annotations

from pathlib import Path

import odradek

PACKAGE = Path(odradek.__file__).parent


def all_but(*packages: str) -> list[str]:
    """Names of the modules of Odradek outside these packages, for `atheris.instrument_imports(exclude=…)`.

    Its `include` instruments the whole of the package `odradek` whatever module is named, which takes seconds.
    ValueError for a package that does not exist, and without packages: nothing would be instrumented.
    """
    files = (file.relative_to(PACKAGE.parent).with_suffix("") for file in PACKAGE.rglob("*.py"))
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    unknown = [each for each in packages if not any(f"{name}.".startswith(f"{each}.") for name in names)]
    if unknown or not packages:
        what = f"no package or module is named {', '.join(unknown)}" if unknown else "no package is named"
        raise ValueError(f"{what}; name those whose coverage guides the fuzzer, such as odradek.protocol")
    return [name for name in names if not f"{name}.".startswith(tuple(f"{each}." for each in packages))]
