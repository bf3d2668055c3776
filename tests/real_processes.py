"""A fixture for tests that start brokers as users do."""

from collections.abc import Iterator

import pytest

from odradek.local.prepared import FORKS_VARIABLE
from tests.forks.brokers import start_brokers_as_forks


@pytest.fixture(scope="module", autouse=True)
def brokers_are_not_forks() -> Iterator[None]:
    start_brokers_as_forks(False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FORKS_VARIABLE, "off")
        yield
    start_brokers_as_forks()
