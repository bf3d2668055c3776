"""The security of the clients under test: TEST_CLIENT_PROPERTIES names a file with the properties of a Java client.

Drivers in other processes inherit the variable; without it they connect without TLS and SASL.
"""

import os
import ssl
from pathlib import Path
from typing import Any

from odradek.admin.profiles import read_client_file
from odradek.conventions.properties_file import parse_properties
from odradek.security.sasl_client.credentials import credentials_of_jaas

VARIABLE = "TEST_CLIENT_PROPERTIES"


def properties_path() -> str | None:
    return os.environ.get(VARIABLE)


def java_properties() -> dict[str, str]:
    path = properties_path()
    if path is None:
        return {}
    return {name: each.value for name, each in parse_properties(Path(path).read_text(), path).items()}


def librdkafka_security() -> dict[str, str]:
    path = properties_path()
    return {} if path is None else read_client_file(path)


def kafka_python_security() -> dict[str, Any]:
    given = java_properties()
    if not given:
        return {}
    found = {
        "security_protocol": given["security.protocol"],
        "ssl_cafile": given.get("ssl.truststore.location"),
        "ssl_certfile": given.get("ssl.keystore.location"),
        "ssl_keyfile": given.get("ssl.keystore.location"),
        **_login(given),
    }
    return {name: value for name, value in found.items() if value is not None}


def aiokafka_security() -> dict[str, Any]:
    given = java_properties()
    if not given:
        return {}
    found: dict[str, Any] = {"security_protocol": given["security.protocol"], **_login(given)}
    if "SSL" in given["security.protocol"]:
        context = ssl.create_default_context(cafile=given["ssl.truststore.location"])
        if "ssl.keystore.location" in given:
            context.load_cert_chain(given["ssl.keystore.location"])
        found["ssl_context"] = context
    return found


def _login(given: dict[str, str]) -> dict[str, str]:
    if "sasl.jaas.config" not in given:
        return {}
    login = credentials_of_jaas(given["sasl.mechanism"], given["sasl.jaas.config"])
    return {
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.user,
        "sasl_plain_password": login.password,
    }
