"""Every definition that these tests load is parsed by both parsers, which must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition import assembling
from tests.pipelines.both_parsers import parse_by_both

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package", autouse=True)
def both_parsers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembling, "parse_pipeline", parse_by_both)
        yield
