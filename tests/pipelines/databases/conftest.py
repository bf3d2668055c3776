"""One PostgreSQL server for each worker of pytest, and a separate database for each test."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.pipelines.databases.server import NoPostgres, Server, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    try:
        context = running_server()
        server = context.__enter__()
    except NoPostgres as error:
        pytest.skip(str(error))
    try:
        yield server
    finally:
        context.__exit__(None, None, None)


@pytest.fixture
def database(postgres: Server) -> str:
    name = f"d{uuid.uuid4().hex[:10]}"
    postgres.execute(f"create database {name}")
    return name
