"""The pytest plugin: fixtures that give a test real brokers. Imports nothing but pytest until one is used.

Override `odradek_broker_properties`, `odradek_session_broker_properties`, `odradek_cluster_properties` or
`odradek_session_cluster_properties` in a conftest.py, a module or a class to configure the brokers:

    @pytest.fixture
    def odradek_broker_properties():
        return {"num.partitions": 3, "auto.create.topics.enable": False}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from odradek.local.running_broker import Property, RunningBroker
    from odradek.local.running_cluster import RunningCluster


@pytest.fixture
def odradek_broker_properties() -> Mapping[str, Property]:
    """Properties of `odradek_broker`, by Kafka's names; override it to configure the broker."""
    return {}


@pytest.fixture
def odradek_broker(odradek_broker_properties: Mapping[str, Property]) -> Iterator[RunningBroker]:
    """A new, empty broker for this test alone; it may be killed and restarted."""
    from odradek.local.running_broker import broker  # noqa: PLC0415 - only its users load it

    with broker(odradek_broker_properties) as running:
        yield running


@pytest.fixture(scope="session")
def odradek_session_broker_properties() -> Mapping[str, Property]:
    """Properties of `odradek_session_broker`, by Kafka's names; override it, session-scoped, in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def odradek_session_broker(odradek_session_broker_properties: Mapping[str, Property]) -> Iterator[RunningBroker]:
    """One broker for all tests of the session (of the worker, with pytest-xdist). Use your own topic names."""
    from odradek.local.running_broker import broker  # noqa: PLC0415 - only its users load it

    with broker(odradek_session_broker_properties) as running:
        yield running


@pytest.fixture
def odradek_cluster_properties() -> Mapping[str, Property]:
    """Properties of every broker of `odradek_cluster`, by Kafka's names; override it to configure them."""
    return {}


@pytest.fixture
def odradek_cluster(odradek_cluster_properties: Mapping[str, Property]) -> Iterator[RunningCluster]:
    """A new cluster of three brokers and ZooKeeper for this test alone; its brokers may be killed and cut off."""
    from odradek.local.running_cluster import cluster  # noqa: PLC0415 - only its users load it

    with cluster(properties=odradek_cluster_properties) as running:
        yield running


@pytest.fixture(scope="session")
def odradek_session_cluster_properties() -> Mapping[str, Property]:
    """Properties of every broker of `odradek_session_cluster`; override it, session-scoped, in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def odradek_session_cluster(odradek_session_cluster_properties: Mapping[str, Property]) -> Iterator[RunningCluster]:
    """One cluster for all tests of the session (of the worker, with pytest-xdist). Use your own topic names, and start
    again the brokers that you kill."""
    from odradek.local.running_cluster import cluster  # noqa: PLC0415 - only its users load it

    with cluster(properties=odradek_session_cluster_properties) as running:
        yield running
