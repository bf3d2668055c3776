"""Distinguished names as Java prints them, and mapping rules as Kafka applies them.

`make oracle` asks Java and Apache Kafka's SslPrincipalMapper; with `--update` their answers are recorded.
"""

import ssl
from typing import Any

import pytest

from odradek.security.tls.distinguished_names import MalformedCertificate, der_content, name_text, subject_name
from odradek.security.tls.principal_mapping import InvalidRules, NoMatchingRule, PrincipalMapping
from tests.jvm.json_session import JsonSession
from tests.security.tls.certificates import authority
from tests.security.tls.principal_cases import RECORDED_CASES, cases, record, recorded

ORACLE_CASES = 4000
DER_SEQUENCE = 0x30


def answer(case: dict[str, Any]) -> dict[str, str]:
    if "der" in case:
        return {"name": name_text(der_content(bytes.fromhex(case["der"]), DER_SEQUENCE))}
    try:
        mapping = PrincipalMapping(case["rules"])
    except InvalidRules:
        return {"outcome": "invalid rules"}
    try:
        return {"name": mapping.name_of(case["name"])}
    except NoMatchingRule:
        return {"outcome": "not mapped"}


def test_answers_are_those_of_java_that_are_recorded() -> None:
    for case in recorded():
        assert answer(case) == case["answer"], case


@pytest.mark.jvm
@pytest.mark.oracle
@pytest.mark.timeout(600)
def test_java_gives_the_same_answers(jvm: None, request: pytest.FixtureRequest) -> None:
    with JsonSession("odradek.PrincipalSession") as session:
        answers = [{**case, "answer": session.call(case)} for case in cases(ORACLE_CASES)]
    if request.config.getoption("update"):
        record(answers[:RECORDED_CASES])
    different = [each for each in answers if answer(each) != each["answer"]]
    assert not different, different[:5]


def test_subject_of_a_certificate_is_found() -> None:

    pem = authority().issue("alice")
    assert subject_name(ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERT") :])) == "CN=alice"


def test_malformed_certificates_are_refused() -> None:
    certificate = bytes.fromhex("3003020100")
    for length in range(len(certificate)):
        with pytest.raises(MalformedCertificate):
            subject_name(certificate[:length])
    for data in (certificate, b"\x30\x80", b"\x30\x84\xff\xff\xff\xff", b"\x1f" * 40):
        with pytest.raises(MalformedCertificate):
            subject_name(data)
