"""The test classes of Apache Kafka that run over mutual TLS as well as in plain text.

Their clients come from the test kit, which gives them what the listener needs. A test that makes a client or a socket
of its own, for a listener in plain text, cannot connect.
"""

TLS_CLASSES: list[str] = []

_OWN_CLIENT = "makes a client of its own, without TLS"
# Class and test of TLS_CLASSES that cannot pass over TLS, with the reason. The list is exact.
TLS_NOT_APPLICABLE: dict[tuple[str, str], str] = {}
