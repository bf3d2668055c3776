"""Starting: settings from everywhere, addresses, and clear words where it cannot be."""

import json
import os
import socket
from pathlib import Path

import pytest

from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.server.process import BrokerProcess, broker_process
from tests.server.requests import create_topic, greet, produce
from tests.wire import WireClient

LOCAL = "PLAINTEXT://127.0.0.1:0"
SOAK = pytest.mark.soak  # of cases that differ in a rule only, which tests/configuration checks without a process


def setting(client: WireClient, name: str) -> str | None:
    asked = DescribeConfigsResource(resource_type=4, resource_name="0", configuration_keys=[name])
    return client.call(DescribeConfigsRequest(resources=[asked]), DescribeConfigsResponse).results[0].configs[0].value


def advertised_address(client: WireClient) -> tuple[str, int]:
    broker = client.call(MetadataRequest(topics=[]), MetadataResponse).brokers[0]
    return broker.host, broker.port


def fails(broker: BrokerProcess, *words: str) -> None:
    """One line that says it all, and nothing else."""
    assert broker.wait() == 1
    assert broker.stdout == ""
    assert broker.stderr.count("\n") == 1, broker.stderr
    assert broker.stderr.startswith("odradek: error: ")
    for word in words:
        assert word in broker.stderr


# --- settings


def test_a_file_an_environment_and_overrides_make_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        f"listeners={LOCAL}\nlog.dirs={tmp_path}/data\nnum.partitions=2\nmessage.max.bytes=2000\nlog.roll.hours=5\n"
    )
    environment = {"ODRADEK_MESSAGE_MAX_BYTES": "3000", "ODRADEK_LOG_ROLL_HOURS": "6"}
    with broker_process(str(file), environment=environment, is_fork=False, log_roll_hours="7") as broker:
        (host, port), *_ = broker.wait_until_ready()
        with WireClient(port, host) as client:
            reported = [setting(client, name) for name in ("num.partitions", "message.max.bytes", "log.roll.hours")]
        assert reported == ["2", "3000", "7"]


def test_a_property_of_kafka_that_means_nothing_here_is_logged(tmp_path: Path) -> None:
    with broker_process(listeners=LOCAL, log_dirs=f"{tmp_path}/data", num_network_threads="9") as broker:
        broker.wait_until_ready()
        broker.process.terminate()
        assert broker.wait() == 0
        assert [line for line in broker.stderr.splitlines() if "property ignored" in line and "num.network" in line]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num.partitons", "3", ["num.partitons", "num.partitions"]),
        ("num.partitions", "0", ["num.partitions", "at least 1"]),
        pytest.param("num.partitions", "many", ["num.partitions", "many"], marks=SOAK),
        pytest.param("listeners", "127.0.0.1:9092", ["listeners", "PLAINTEXT://127.0.0.1:9092"], marks=SOAK),
        ("listeners", "SSL://127.0.0.1:0", ["listeners", "SSL", "ssl.keystore.location"]),
        pytest.param(
            "advertised.listeners", "PLAINTEXT://0.0.0.0:9092", ["advertised.listeners", "0.0.0.0"], marks=SOAK
        ),
        pytest.param("log.cleanup.policy", "burn", ["log.cleanup.policy", "burn"], marks=SOAK),
    ],
)
def test_a_setting_that_cannot_be_is_named_and_leaves_no_trace(
    tmp_path: Path, name: str, value: str, words: list[str]
) -> None:
    data = tmp_path / "data"
    with broker_process(f"--override=log.dirs={data}", f"--override={name}={value}") as broker:
        fails(broker, *words)
    assert not data.exists()


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ODRADEK_NUM_PARTITONS", "3", ["ODRADEK_NUM_PARTITONS", "num.partitions"]),
        pytest.param("ODRADEK_NUM_PARTITIONS", "x", ["ODRADEK_NUM_PARTITIONS", "x"], marks=SOAK),
        ("ODRADEK_LOG_LEVEL", "loud", ["ODRADEK_LOG_LEVEL", "loud", "debug"]),
        pytest.param("ODRADEK_LOG_FORMAT", "xml", ["ODRADEK_LOG_FORMAT", "xml", "json"], marks=SOAK),
    ],
)
def test_a_variable_that_cannot_be_is_named(tmp_path: Path, variable: str, value: str, words: list[str]) -> None:
    data = tmp_path / "data"
    with broker_process(environment={variable: value}, listeners=LOCAL, log_dirs=str(data)) as broker:
        fails(broker, *words)
    assert not data.exists()


# --- places


def test_two_brokers_do_not_share_a_directory(tmp_path: Path) -> None:
    data = f"{tmp_path}/data"
    with broker_process(listeners=LOCAL, log_dirs=data) as first:
        (host, port), *_ = first.wait_until_ready()
        with WireClient(port, host) as client:
            create_topic(client, "t")
            with broker_process(listeners=LOCAL, log_dirs=data) as second:
                fails(second, data, "used by another broker", "log.dirs")
            assert produce(client, "t") == 0, "the first is unharmed"


def test_a_second_directory_that_is_taken_leaves_the_first_as_it_was(tmp_path: Path) -> None:
    mine, shared = tmp_path / "mine", tmp_path / "shared"
    with broker_process(listeners=LOCAL, log_dirs=str(mine)) as broker:
        broker.wait_until_ready()
        broker.process.terminate()
        assert broker.wait() == 0
    mark = mine / ".kafka_cleanshutdown"
    assert mark.exists()
    with broker_process(listeners=LOCAL, log_dirs=str(shared)) as owner:
        owner.wait_until_ready()
        with broker_process(listeners=LOCAL, log_dirs=f"{mine},{shared}") as broker:
            fails(broker, str(shared), "used by another broker")
    assert mark.exists(), "no recovery is needed"


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    data = f"{tmp_path}/data"
    with broker_process(listeners=LOCAL, log_dirs=data, node_id="1") as broker:
        broker.wait_until_ready()
        broker.process.terminate()
        assert broker.wait() == 0
    with broker_process(listeners=LOCAL, log_dirs=data, node_id="2") as broker:
        fails(broker, "node.id 1", "node.id")


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with broker_process(listeners=LOCAL, log_dirs=f"{tmp_path}/file/data") as broker:
        fails(broker, f"{tmp_path}/file/data", "log.dirs")


def test_a_log_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with broker_process(is_fork=False, listeners=LOCAL, log_dirs=f"{tmp_path}/file") as broker:
        fails(broker, f"{tmp_path}/file is a file", "log.dirs")


def test_a_second_log_directory_that_is_a_file_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with broker_process(listeners=LOCAL, log_dirs=f"{tmp_path}/data,{tmp_path}/file") as broker:
        (host, port), *_ = broker.wait_until_ready()
        with WireClient(port, host) as client:
            create_topic(client, "t")
        assert (tmp_path / "data" / "t-0").is_dir()
        broker.process.terminate()
        assert broker.wait() == 0
        assert [line for line in broker.stderr.splitlines() if "log directory failed" in line and "/file" in line]


def test_a_log_directory_that_is_not_writable_is_named(tmp_path: Path) -> None:
    """The lock file is where the broker first writes; a directory in its place refuses root, too."""
    (tmp_path / "data" / ".lock").mkdir(parents=True)
    with broker_process(listeners=LOCAL, log_dirs=f"{tmp_path}/data") as broker:
        fails(broker, f"{tmp_path}/data is not writable", "log.dirs")


def test_a_relative_directory_is_where_the_broker_was_started(tmp_path: Path) -> None:
    with broker_process(directory=str(tmp_path), listeners=LOCAL, log_dirs="data") as broker:
        broker.wait_until_ready()
        assert (tmp_path / "data" / "meta.properties").exists()


# --- addresses


@pytest.mark.parametrize(
    "host", ["127.0.0.1", *(pytest.param(host, marks=SOAK) for host in ("", "0.0.0.0", "localhost"))]
)
def test_a_port_in_use_is_named_and_leaves_no_trace(tmp_path: Path, host: str) -> None:
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with broker_process(listeners=f"PLAINTEXT://{host}:{port}", log_dirs=str(data)) as broker:
            fails(broker, f":{port}", "in use", "listeners")
    assert not data.exists()


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_named(tmp_path: Path, host: str) -> None:
    with broker_process(listeners=f"PLAINTEXT://{host}:0", log_dirs=f"{tmp_path}/data") as broker:
        fails(broker, host, "listeners")


def test_port_0_is_any_free_port_and_reported_to_clients(tmp_path: Path) -> None:
    with broker_process(listeners=LOCAL, log_dirs=f"{tmp_path}/data") as broker:
        (host, port), *_ = broker.wait_until_ready()
        assert port > 0
        with WireClient(port, host) as client:
            assert advertised_address(client) == ("127.0.0.1", port)


def test_clients_of_each_listener_are_reported_their_own_address(tmp_path: Path) -> None:
    with broker_process(
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://localhost:0",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        log_dirs=f"{tmp_path}/data",
        inter_broker_listener_name="INSIDE",
    ) as broker:
        inside, outside = broker.wait_until_ready()
        assert inside[1] != outside[1]
        for host, port in (inside, outside):
            with WireClient(port, host) as client:
                assert advertised_address(client) == (host, port)


def test_an_advertised_listener_is_what_clients_are_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with broker_process(
        listeners=f"PLAINTEXT://127.0.0.1:{port}",
        advertised_listeners="PLAINTEXT://broker.example.com:19092",
        log_dirs=f"{tmp_path}/data",
    ) as broker:
        assert broker.wait_until_ready() == [("broker.example.com", 19092)]
        with WireClient(port) as client:
            assert advertised_address(client) == ("broker.example.com", 19092)


@pytest.mark.parametrize("host", ["", pytest.param("0.0.0.0", marks=SOAK)])
def test_a_wildcard_is_reported_as_a_name_that_resolves(tmp_path: Path, host: str) -> None:
    with broker_process(listeners=f"PLAINTEXT://{host}:0", log_dirs=f"{tmp_path}/data") as broker:
        (_, port), *_ = broker.wait_until_ready()
        with WireClient(port) as client:
            advertised_host, advertised_port = advertised_address(client)
        assert advertised_port == port
        assert advertised_host not in ("", "0.0.0.0", "::")
        assert socket.getaddrinfo(advertised_host, advertised_port)


def test_the_descriptor_limit_is_raised_to_what_is_allowed(tmp_path: Path) -> None:
    """A login shell's 256 (macOS) or 1,024 (Linux) descriptors would be gone with as many clients."""
    prefix = ["sh", "-c", 'ulimit -Sn 128 && exec "$@"', "sh"]
    with broker_process(prefix=prefix, listeners=LOCAL, log_dirs=f"{tmp_path}/data") as broker:
        (host, port), *_ = broker.wait_until_ready()
        clients = [WireClient(port, host) for _ in range(200)]
        try:
            greet(clients[-1])
            greet(clients[0])
        finally:
            for client in clients:
                client.close()


# --- logs


def test_json_logs_are_one_object_a_line(tmp_path: Path) -> None:
    environment = {"ODRADEK_LOG_FORMAT": "json", "ODRADEK_LOG_LEVEL": "debug"}
    with broker_process(
        environment=environment, listeners=LOCAL, log_dirs=f"{tmp_path}/data", num_network_threads="9"
    ) as broker:
        (host, port), *_ = broker.wait_until_ready()
        with WireClient(port, host) as rude:
            rude.send(b"\0\0\0\x10" + 'a "quoted"\nüß\0'.encode())
            assert rude.is_closed_by_peer()
        broker.process.terminate()
        assert broker.wait() == 0
    entries = [json.loads(line) for line in broker.stderr.splitlines()]
    assert {"property ignored", "connection closed", "stopping", "stopped"} <= {entry["event"] for entry in entries}
    assert all({"time", "level", "event", "logger"} <= set(entry) for entry in entries)


def test_levels_leave_out_what_is_below(tmp_path: Path) -> None:
    with broker_process(
        environment={"ODRADEK_LOG_LEVEL": "WARNING"}, listeners=LOCAL, log_dirs=f"{tmp_path}/data"
    ) as broker:
        broker.wait_until_ready()
        broker.process.terminate()
        assert broker.wait() == 0
    assert broker.stderr == ""


def test_the_ready_line_is_all_that_is_printed(tmp_path: Path) -> None:
    with broker_process(is_fork=False, listeners=LOCAL, log_dirs=f"{tmp_path}/data") as broker:
        broker.wait_until_ready()
        broker.process.terminate()
        assert broker.wait() == 0
    assert broker.stdout.count("\n") == 1
    assert os.fspath(tmp_path) in broker.stdout
