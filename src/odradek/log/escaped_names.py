"""Names of topics as parts of names of files. Kafka's names stay as they are, and none of them has a '%'; names of
topics in streams have '/' and ':'."""


def escape_topic(name: str) -> str:
    return name.replace("/", "%2F").replace(":", "%3A")


def unescape_topic(escaped: str) -> str:
    return escaped.replace("%2F", "/").replace("%3A", ":")
