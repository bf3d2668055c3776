"""CRC-32C, by the extension module of the package `crc32c`: the package itself also imports its command line and reads
the metadata of what is installed, a tenth of a broker's start."""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crc32c import crc32c

    __all__ = ["crc32c"]
else:
    _package = find_spec("crc32c")
    _spec = PathFinder.find_spec("crc32c._crc32c", _package and _package.submodule_search_locations)
    if _spec is None:
        raise ImportError("crc32c is not installed: run pip install odradek again")
    _extension = module_from_spec(_spec)
    _spec.loader.exec_module(_extension)
    crc32c = _extension.crc32c
