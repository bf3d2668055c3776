"""What DescribeConfigs tells, as Kafka tells it."""

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_descriptions import (
    describe_broker_configs,
    describe_client_metrics_configs,
    describe_default_broker_configs,
    describe_group_configs,
    describe_topic_configs,
)
from odradek.configuration.config_types import ConfigEntry, ConfigSource, ConfigSynonym, ConfigType

CONFIG = BrokerConfig.from_properties({})


def by_name(entries: list[ConfigEntry]) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in entries}


def test_topic_setting_has_its_own_value_then_the_brokers_then_the_default() -> None:
    broker = BrokerConfig.from_properties({"log.segment.bytes": "2000000"}).with_dynamic(
        {"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"}
    )
    entry = by_name(describe_topic_configs({"segment.bytes": "5000000"}, broker))["segment.bytes"]
    assert entry.value == "5000000"
    assert entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert entry.type is ConfigType.INT
    assert not entry.is_read_only
    assert not entry.is_sensitive
    assert entry.documentation
    assert entry.synonyms == (
        ConfigSynonym("segment.bytes", "5000000", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ConfigSynonym("log.segment.bytes", "4000000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "3000000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "2000000", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "1073741824", ConfigSource.DEFAULT_CONFIG),
    )


def test_topic_settings_are_all_reported_or_only_those_asked_for() -> None:
    assert len(describe_topic_configs({}, CONFIG)) == 33
    assert [entry.name for entry in describe_topic_configs({}, CONFIG, ["retention.ms", "nonsense"])] == [
        "retention.ms"
    ]
    assert "internal.segment.bytes" in by_name(describe_topic_configs({"internal.segment.bytes": "9"}, CONFIG))


def test_lists_are_reported_in_one_form() -> None:
    entry = by_name(describe_topic_configs({"cleanup.policy": "delete , compact"}, CONFIG))["cleanup.policy"]
    assert entry.value == "delete,compact"


def test_retention_that_comes_from_hours_has_no_synonyms_as_in_kafka() -> None:
    broker = BrokerConfig.from_properties({"log.retention.hours": "1"})
    entry = by_name(describe_topic_configs({}, broker))["retention.ms"]
    assert entry.value == "3600000"
    assert entry.source is ConfigSource.DEFAULT_CONFIG
    assert entry.synonyms == ()


def test_retention_in_ms_has_the_coarser_ones_behind_it() -> None:
    broker = BrokerConfig.from_properties({"log.retention.ms": "5", "log.retention.hours": "1"})
    assert by_name(describe_topic_configs({}, broker))["retention.ms"].synonyms == (
        ConfigSynonym("log.retention.ms", "5", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigSynonym("log.retention.hours", "1", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    )


def test_broker_settings_say_where_they_come_from_and_whether_they_can_change() -> None:
    broker = BrokerConfig.from_properties({"num.partitions": "3", "num.io.threads": "9"})
    entries = by_name(describe_broker_configs(broker.with_dynamic({}, {"message.max.bytes": "77"})))
    assert entries["num.partitions"].source is ConfigSource.STATIC_BROKER_CONFIG
    assert entries["num.partitions"].is_read_only
    assert entries["message.max.bytes"].value == "77"
    assert entries["message.max.bytes"].source is ConfigSource.DYNAMIC_BROKER_CONFIG
    assert not entries["message.max.bytes"].is_read_only
    assert entries["num.io.threads"].value == "9"
    assert entries["auto.create.topics.enable"].source is ConfigSource.DEFAULT_CONFIG
    assert entries["log.dirs"].value is None
    assert "producer.id.expiration.check.interval.ms" not in entries


def test_what_kafka_does_not_know_is_sensitive_and_never_shown() -> None:
    broker = CONFIG.with_dynamic({"invalid": "2"}, {"listener.name.x.ssl.keystore.password": "secret"})
    (default,) = describe_default_broker_configs(broker)
    assert (default.name, default.value, default.is_sensitive) == ("invalid", None, True)
    assert default.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    entries = by_name(describe_broker_configs(broker))
    password = entries["listener.name.x.ssl.keystore.password"]
    assert password.is_sensitive
    assert password.value is None
    assert password.type is ConfigType.PASSWORD
    assert all(synonym.value is None for synonym in password.synonyms)
    assert entries["invalid"].value is None


def test_default_broker_resource_tells_only_what_was_set_there() -> None:
    broker = CONFIG.with_dynamic({"message.max.bytes": "9"}, {"message.max.bytes": "8"})
    (entry,) = describe_default_broker_configs(broker)
    assert entry.value == "9"
    assert entry.synonyms == (ConfigSynonym("message.max.bytes", "9", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),)


def test_group_settings_have_the_brokers_behind_them() -> None:
    entries = by_name(describe_group_configs({"consumer.session.timeout.ms": "50000"}, CONFIG))
    assert entries["consumer.session.timeout.ms"].value == "50000"
    assert entries["consumer.session.timeout.ms"].synonyms == (
        ConfigSynonym("consumer.session.timeout.ms", "50000", ConfigSource.DYNAMIC_GROUP_CONFIG),
        ConfigSynonym("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT_CONFIG),
    )
    assert entries["streams.num.standby.replicas"].synonyms == (
        ConfigSynonym("group.streams.num.standby.replicas", "0", ConfigSource.DEFAULT_CONFIG),
    )
    assert entries["share.isolation.level"].synonyms == (
        ConfigSynonym("share.isolation.level", "read_uncommitted", ConfigSource.DEFAULT_CONFIG),
    )


def test_metrics_subscriptions_have_only_themselves() -> None:
    entries = by_name(describe_client_metrics_configs({"metrics": "org.apache"}))
    assert entries["metrics"].synonyms == (
        ConfigSynonym("metrics", "org.apache", ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG),
    )
    assert entries["interval.ms"].value == "300000"
    assert entries["interval.ms"].synonyms == ()
    assert entries["match"].value == ""
