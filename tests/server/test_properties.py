"""Settings from a file, the environment and the command line. The file's rules are those of java.util.Properties."""

import pytest

from odradek.conventions.properties_file import PropertiesError, Property, parse_properties
from odradek.server.properties import broker_config, load_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Each case was put to java.util.Properties, which gave the same answer.
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("a", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a = : b", {"a": ": b"}),
        ("  \t\f a=b", {"a": "b"}),
        ("# comment\n! comment\n   # comment\na=b", {"a": "b"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=1\nb=2\r\nc=3\rd=4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\\n   2\\\n\t3", {"a": "123"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        ("\\\n# a comment\nb=2", {"b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a\\ b\\=c\\:d = e", {"a b=c:d": "e"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "\N{GRINNING FACE}"}),
        ("a=é", {"a": "é"}),
        ("\n\n  \n", {}),
        ("=x", {"": "x"}),
    ],
)
def test_file_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert {name: each.value for name, each in parse_properties(text, "f").items()} == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uxyzw", "\\u=1"])
def test_broken_unicode_escape_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(PropertiesError, match=r"f line 2: \\u must be followed by four hexadecimal digits"):
        parse_properties("\n" + text, "f")


def test_origin_is_the_first_line_of_a_value() -> None:
    properties = parse_properties("# first\nnum.partitions=\\\n3\n\nlog.dirs=/a", "server.properties")
    assert properties["num.partitions"] == Property("3", "server.properties line 2")
    assert properties["log.dirs"].origin == "server.properties line 5"


def test_environment_wins_over_file_and_override_over_both() -> None:
    properties = load_properties(
        "num.partitions=1\nlog.dirs=/file\nnode.id=1",
        {"ODRADEK_LOG_DIRS": "/environment", "ODRADEK_NODE_ID": "2", "PATH": "/bin"},
        ["node.id=3", " fetch.max.bytes = 2048 "],
    )
    assert properties == {
        "num.partitions": Property("1", "server.properties line 1"),
        "log.dirs": Property("/environment", "environment variable ODRADEK_LOG_DIRS"),
        "node.id": Property("3", "--override node.id=3"),
        "fetch.max.bytes": Property("2048", "--override  fetch.max.bytes = 2048 "),
    }


def test_variables_find_the_property_they_mean() -> None:
    properties = load_properties(
        None,
        {
            "ODRADEK_ZOOKEEPER_CLIENTCNXNSOCKET": "x",
            "ODRADEK_LISTENER_NAME_INTERNAL_SSL_KEYSTORE_TYPE": "JKS",
            "ODRADEK_BOOTSTRAP_SERVERS": "for another command",
        },
        [],
        other_variables=["ODRADEK_BOOTSTRAP_SERVERS"],
    )
    assert set(properties) == {"zookeeper.clientCnxnSocket", "listener.name.internal.ssl.keystore.type"}


def test_unknown_variable_is_refused_by_name() -> None:
    with pytest.raises(PropertiesError) as caught:
        load_properties(None, {"ODRADEK_LOG_DRIS": "/a"}, [])
    assert str(caught.value) == (
        "environment variable ODRADEK_LOG_DRIS: Unknown property log.dris; did you mean log.dirs?"
    )


@pytest.mark.parametrize("override", ["num.partitions", "=3", ""])
def test_malformed_override_is_refused(override: str) -> None:
    with pytest.raises(PropertiesError, match="expected name=value"):
        load_properties(None, {}, [override])


def test_override_value_may_hold_equals_signs() -> None:
    assert load_properties(None, {}, ["broker.rack=a=b"])["broker.rack"].value == "a=b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num.partitons=1", "server.properties line 1: Unknown property num.partitons; did you mean num.partitions?"),
        (
            "\nnum.partitions=0",
            ("server.properties line 2: Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        ),
        (
            "listeners=PLAINTEXT://:x",
            (
                "server.properties line 1: Invalid value PLAINTEXT://:x for configuration listeners: expected "
                "NAME://host:port, several of them separated by commas, for example PLAINTEXT://127.0.0.1:9092"
            ),
        ),
    ],
)
def test_error_says_where_what_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(PropertiesError) as caught:
        broker_config(load_properties(text, {}, []))
    assert str(caught.value) == message


def test_good_properties_become_a_configuration() -> None:
    config = broker_config(load_properties("num.partitions=4", {"ODRADEK_NODE_ID": "9"}, ["broker.rack=r1"]))
    assert (config.num_partitions, config.node_id, config.rack) == (4, 9, "r1")
