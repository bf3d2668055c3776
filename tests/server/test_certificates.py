"""TLS contexts that are kept up to date: what cannot be used is tried again, and never ends the checks or the start."""

import asyncio
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.host.host import real_host
from odradek.host.tls_network import TlsNetwork
from odradek.security.tls.store_problem import StoreProblem
from odradek.server import certificates as certificates_module
from odradek.server import tls_context as tls_context_module
from odradek.server.certificates import Certificates
from odradek.server.tls_context import RefreshedContext
from tests.security.tls.certificates import write_certificates

PATIENCE_S = 30.0


def config_of(directory: Path) -> BrokerConfig:
    properties = write_certificates(directory).listener_properties()
    return BrokerConfig.from_properties({"listeners": "SSL://127.0.0.1:1", **properties})


async def test_a_context_that_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    """Neither the settings nor the files change between the attempts: what was missing is elsewhere."""
    problems: list[Exception] = [StoreProblem("no memory file"), RuntimeError("a bug")]

    def make(_settings: Any, _read: Any) -> ssl.SSLContext:
        if made and problems:
            raise problems.pop()
        made.append(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        return made[-1]

    made: list[ssl.SSLContext] = []
    settings = config_of(tmp_path).listener_tls("SSL")
    context = RefreshedContext("test", real_host(), make)
    await context.load(settings)
    (tmp_path / "broker.pem").write_text("other")
    for _ in range(2):
        await context.refresh(settings)
        assert context.current is made[0]
    await context.refresh(settings)
    assert context.current is made[1]


async def test_the_files_are_looked_at_after_any_exception(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(certificates_module, "CHECK_INTERVAL_MS", 1.0)
    config = config_of(tmp_path)
    certificates = Certificates(config, real_host())
    looked = asyncio.Semaphore(0)

    async def refresh() -> None:
        looked.release()
        raise RuntimeError("not a StoreProblem")

    monkeypatch.setattr(certificates, "refresh", refresh)
    await certificates.load(lambda: config)
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(3):
            await looked.acquire()
    certificates.close()


async def test_a_dynamic_store_that_cannot_be_used_does_not_keep_the_broker_from_starting(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    location = "listener.name.ssl.ssl.keystore.location"
    dynamic = config.with_dynamic({}, {location: "/none.pem"})
    certificates = Certificates(dynamic, real_host())
    await certificates.load(lambda: dynamic)
    listener = certificates.of_listener("SSL")
    assert listener is not None
    assert listener.context.current is not None
    certificates.close()
    broken = BrokerConfig.from_properties({**config.static_values, "ssl.keystore.location": "/none.pem"})
    with pytest.raises(StoreProblem):
        await Certificates(broken, real_host()).load(lambda: broken)


@pytest.mark.parametrize("listeners", ["SSL://127.0.0.1:1", "SSL://127.0.0.1:1,BROKERS://127.0.0.1:2"])
def test_handshakes_between_brokers_do_not_wait_for_those_of_strangers(tmp_path: Path, listeners: str) -> None:
    brokers = listeners.rpartition(",")[2].partition(":")[0]
    properties = {
        **write_certificates(tmp_path).listener_properties(),
        "listeners": listeners,
        "listener.security.protocol.map": "SSL:SSL,BROKERS:SSL",
        "inter.broker.listener.name": brokers,
        "zookeeper.connect": "127.0.0.1:1",
    }
    certificates, held = Certificates(BrokerConfig.from_properties(properties), real_host()), threading.Event()
    try:
        network, for_clients = certificates.broker_network, certificates.of_listener("SSL")
        for_brokers = certificates.of_listener("BROKERS")
        assert isinstance(network, TlsNetwork)
        assert for_clients is not None
        for_clients._resources.threads.submit(held.wait)
        assert network._resources.threads.submit(int).result(PATIENCE_S) == 0
        assert for_brokers is None or for_brokers._resources is network._resources
    finally:
        held.set()
        certificates.close()


async def test_a_check_of_the_files_does_not_undo_a_change_of_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The check has read the former settings, and ends after the change."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    old, new = config_of(tmp_path / "old"), config_of(tmp_path / "new")
    configs, calls = [old], list[object]()
    certificates = Certificates(old, real_host())
    await certificates.load(lambda: configs[-1])
    loop, has_begun, has_changed = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    file_versions = tls_context_module.file_versions

    def note(settings: Any, disk: Any) -> Any:
        calls.append(settings)
        if len(calls) == 1:
            loop.call_soon_threadsafe(has_begun.set)
            has_changed.wait(0.5)  # the change waits for the check: it does not come in this time
        return file_versions(settings, disk)

    monkeypatch.setattr(tls_context_module, "file_versions", note)
    async with asyncio.timeout(PATIENCE_S):
        checking = asyncio.ensure_future(certificates.refresh())
        await has_begun.wait()
        configs.append(new)
        changing = asyncio.ensure_future(certificates.refresh())
        changing.add_done_callback(lambda _: has_changed.set())
        await asyncio.gather(checking, changing)
    certificates.close()
    listener = certificates.of_listener("SSL")
    assert listener is not None
    assert listener.context._settings == new.listener_tls("SSL")
