"""The report of a session, written to docs/reliability.md when every row has run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.report import Report, progress

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Iterator[Report]:
    made = Report()
    yield made
    progress("\n" + made.table())
    selected = [item for item in request.session.items if "report" in getattr(item, "fixturenames", ())]
    names_files = any(".py" in argument for argument in request.config.args)
    if names_files or request.config.getoption("keyword") or len(made.rows) < len(selected):
        progress("some rows were not run: docs/reliability.md is not written")
    else:
        made.write()
        progress("docs/reliability.md is written")
