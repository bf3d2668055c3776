"""The broker's configuration: defaults, resolution of names that stand for each other, and errors that help."""

import pytest

from odradek.configuration.broker_config_table import BROKER_CONFIGS
from odradek.configuration.broker_configs import BrokerConfig, known_names
from odradek.configuration.config_types import ConfigError
from odradek.configuration.known_properties import KNOWN_PROPERTIES
from odradek.configuration.listeners import Listener


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties({name.replace("_", "."): value for name, value in properties.items()})


def error_of(**properties: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config(**properties)
    return str(caught.value)


def test_defaults_listen_on_this_machine_alone() -> None:
    default = config()
    assert default.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert default.inter_broker_listener_name == "PLAINTEXT"
    assert default.node_id == 0
    assert default.log_dirs == ("/tmp/odradek-logs",)
    assert default.num_partitions == 1
    assert default.auto_create_topics_enable
    assert default.socket_request_max_bytes == 104857600
    assert default.rack is None
    assert default.ignored_properties == ()


def test_node_id_and_its_older_name() -> None:
    assert config(node_id="3").node_id == 3
    assert config(broker_id="4").node_id == 4
    assert config(broker_id="-1").node_id == 0
    assert config(node_id="5", broker_id="5").node_id == 5
    assert error_of(node_id="5", broker_id="6") == (
        "Invalid value 5 for configuration node.id: must be the same as broker.id, which is 6"
    )


def test_a_listener_may_have_a_limit_of_its_own() -> None:
    name = "listener.name.plaintext.max.connections"
    limited = BrokerConfig.from_properties({name: "7"})
    assert (limited.listener_max_connections, limited.ignored_properties) == ({"PLAINTEXT": 7}, ())
    assert limited.with_dynamic({}, {name: "8"}).listener_max_connections == {"PLAINTEXT": 8}
    assert config().listener_max_connections == {}
    with pytest.raises(ConfigError, match=f"configuration {name}"):
        BrokerConfig.from_properties({name: "-1"})


def test_log_dirs_wins_over_log_dir() -> None:
    assert config(log_dir="/a", log_dirs="/b, /c").log_dirs == ("/b", "/c")
    assert config(log_dir="/a").log_dirs == ("/a",)
    assert config(log_dirs="/a,/a").log_dirs == ("/a",)
    assert "expected one or more directories" in error_of(log_dirs="")
    assert "expected one or more directories" in error_of(log_dirs="/a,,/b")


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log_retention_hours": "1"}, 3_600_000),
        ({"log_retention_hours": "1", "log_retention_minutes": "2"}, 120_000),
        ({"log_retention_hours": "1", "log_retention_minutes": "2", "log_retention_ms": "3"}, 3),
        ({"log_retention_hours": "-1"}, -1),
        ({"log_retention_ms": "-5"}, -1),
    ],
)
def test_finest_retention_wins(properties: dict[str, str], retention_ms: int) -> None:
    assert config(**properties).topic_defaults["retention.ms"] == retention_ms


def test_other_joined_properties() -> None:
    assert config(log_roll_hours="2").topic_defaults["segment.ms"] == 7_200_000
    assert config(log_roll_hours="2", log_roll_ms="9").topic_defaults["segment.ms"] == 9
    assert config(log_roll_jitter_hours="1").topic_defaults["segment.jitter.ms"] == 3_600_000
    assert config(log_flush_scheduler_interval_ms="7").topic_defaults["flush.ms"] == 7
    assert config(log_flush_scheduler_interval_ms="7", log_flush_interval_ms="8").topic_defaults["flush.ms"] == 8
    assert config(message_max_bytes="10").topic_defaults["max.message.bytes"] == 10


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"log_roll_ms": "0"}, "Invalid value 0 for configuration log.roll.ms: must be greater than or equal to 1"),
        ({"log_retention_ms": "0"}, "must be unlimited (-1) or, greater than or equal to 1"),
        ({"log_cleaner_max_compaction_lag_ms": "1", "log_cleaner_min_compaction_lag_ms": "2"}, "must not be more than"),
        (
            {"offsets_topic_segment_bytes": "1000"},
            "Invalid value 1000 for configuration offsets.topic.segment.bytes: Value must be at least 1048576",
        ),
        ({"num_partitions": "0"}, "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        ({"num_partitions": "many"}, "Invalid value many for configuration num.partitions: Not a number of type INT"),
        ({"auto_create_topics_enable": "yes"}, "Expected value to be either true or false"),
        ({"compression_type": "none"}, "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ({"inter_broker_listener_name": "OTHER"}, "must be one of the listeners: PLAINTEXT"),
    ],
)
def test_errors_name_property_value_and_what_is_allowed(properties: dict[str, str], message: str) -> None:
    assert message in error_of(**properties)


def test_unknown_property_is_refused_with_the_nearest_name() -> None:
    assert error_of(num_partitons="1") == "Unknown property num.partitons; did you mean num.partitions?"
    assert error_of(xyzzy="1") == "Unknown property xyzzy"


def test_kafkas_other_properties_are_accepted_and_reported() -> None:
    ignored = config(password_encoder_secret="x", num_io_threads="8", listener_name_x_ssl_provider="JSSE")
    assert [each.name for each in ignored.ignored_properties] == [
        "password.encoder.secret",
        "num.io.threads",
        "listener.name.x.ssl.provider",
    ]
    assert ignored.ignored_properties[0].reason == "Kafka setting that Odradek does not use; ignored"


def test_settings_without_effect_are_reported_and_others_are_not() -> None:
    built = config(group_consumer_session_timeout_ms="50000", transaction_max_timeout_ms="1000")
    assert built.ignored_properties == ()
    without_effect = {
        "group.share.heartbeat.interval.ms": "1000",
        "log.flush.start.offset.checkpoint.interval.ms": "1000",
        "log.preallocate": "true",
    }
    assert [each.name for each in BrokerConfig.from_properties(without_effect).ignored_properties] == [*without_effect]


def test_kraft_sample_file_is_accepted_without_its_controller_listener() -> None:
    kraft = BrokerConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": "1@localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
            "log.dirs": "/tmp/kraft-combined-logs",
            "offsets.topic.replication.factor": "1",
        }
    )
    assert kraft.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert kraft.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092),)
    assert any("CONTROLLER" in each.reason for each in kraft.ignored_properties)


def test_no_property_is_both_meaningful_and_meaningless() -> None:
    assert not set(BROKER_CONFIGS) & set(KNOWN_PROPERTIES)
    assert len(known_names()) == len(set(known_names()))


def test_dynamic_settings_win_and_leave_the_old_value_alone() -> None:
    static = config(log_retention_hours="1", message_max_bytes="100")
    dynamic = static.with_dynamic({"message.max.bytes": "200", "log.retention.ms": "5"}, {"message.max.bytes": "300"})
    assert dynamic.values["message.max.bytes"] == 300
    assert dynamic.topic_defaults["retention.ms"] == 5
    assert static.values["message.max.bytes"] == 100
    assert dynamic.with_dynamic({}, {}) == static
    assert dynamic.with_dynamic(dynamic.dynamic_default_values, dynamic.dynamic_broker_values) is dynamic


def test_zookeeper_settings_that_would_have_no_effect_are_refused() -> None:
    assert config(zookeeper_connect="a:2181,b:2181/kafka").ignored_properties == ()
    assert "digest:user:password" in error_of(zookeeper_auth="digest:secret")
    assert "secret" not in error_of(zookeeper_auth="digest:secret")
    assert "set zookeeper.auth" in error_of(zookeeper_set_acl="true")
    assert "must be PEM files" in error_of(
        zookeeper_ssl_client_enable="true", zookeeper_ssl_truststore_location="ca.jks"
    )
