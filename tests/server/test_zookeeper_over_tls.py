"""A broker whose ZooKeeper accepts TLS connections with certificates only."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.local.ports import find_stable_port
from odradek.local.running_broker import RunningBroker
from odradek.local.zookeeper import QUICK_START, STANDALONE, find_jars, find_java
from tests.security.tls.certificates import CertificateFiles, write_certificates
from tests.waiting import eventually

pytestmark = [pytest.mark.jvm, pytest.mark.soak, pytest.mark.timeout(300)]
PATIENCE_S = 60.0


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
    except OSError:
        return False
    return True


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return write_certificates(tmp_path)


@pytest.fixture
def secure_port(files: CertificateFiles, tmp_path: Path) -> Iterator[int]:
    port = find_stable_port()
    configuration = tmp_path / "zoo.cfg"
    configuration.write_text(
        f"tickTime=500\ndataDir={tmp_path / 'zookeeper'}\nsecureClientPort={port}\nadmin.enableServer=false\n"
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"ssl.keyStore.type=PEM\nssl.keyStore.location={files.broker}\n"
        f"ssl.trustStore.type=PEM\nssl.trustStore.location={files.ca}\n"
    )
    jars = Path(find_jars(None)[0]).parent
    output = tmp_path / "zookeeper.out"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [find_java(), *QUICK_START, "-cp", f"{jars}/*", STANDALONE, str(configuration)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        eventually(lambda: process.poll() is not None or accepts(port), "the start of ZooKeeper", pause_s=0.1)
        assert process.poll() is None, output.read_text()
        yield port
    finally:
        process.kill()
        process.wait()


def test_broker_keeps_its_metadata_in_zookeeper_over_tls(files: CertificateFiles, secure_port: int) -> None:
    properties = {
        "zookeeper.connect": f"127.0.0.1:{secure_port}/odradek",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.type": "PEM",
        "zookeeper.ssl.truststore.location": files.ca,
        "zookeeper.ssl.keystore.type": "PEM",
        "zookeeper.ssl.keystore.location": files.client,
    }
    with RunningBroker(properties) as broker:
        assert broker.is_running
