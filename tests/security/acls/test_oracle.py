"""Apache Kafka's StandardAuthorizer and our rules decide alike on random access control lists.

`make oracle` asks Apache Kafka 100,000 times; `make test` compares with decisions that it recorded (`--update`).
"""

import hashlib
import json
from pathlib import Path

import pytest

from odradek.security.acls import decisions
from odradek.security.acls.bindings import AclBinding
from odradek.security.acls.index import AclDraft
from odradek.security.authorizer import Operation
from tests.jvm.json_session import JsonSession
from tests.security.acls.acl_cases import Case, decisions_of, random_case

RECORDED = Path(__file__).parent / "recorded_decisions.jsonl"
RECORDED_SEEDS = range(40)
REQUESTS = 100
ORACLE_CASES = 1000  # of REQUESTS decisions each


def as_row(seed: int, case: Case, decided: list[bool]) -> str:
    bits = "".join("1" if each else "0" for each in decided)
    digest = hashlib.sha256(case.digest().encode()).hexdigest()[:16]
    return json.dumps({"seed": seed, "case": digest, "decisions": bits})


def differing_seeds() -> list[int]:
    rows = [as_row(seed, case, decisions_of(case)) for seed in RECORDED_SEEDS for case in [random_case(seed, REQUESTS)]]
    recorded = RECORDED.read_text().splitlines()
    assert len(recorded) == len(rows), "record the decisions again: make oracle ARGS=--update"
    return [seed for seed, row, expected in zip(RECORDED_SEEDS, rows, recorded, strict=True) if row != expected]


def test_decisions_are_those_that_apache_kafka_recorded() -> None:
    assert not differing_seeds()


def _without_implied_describe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(decisions._ALLOWING, Operation.DESCRIBE, frozenset((Operation.DESCRIBE, Operation.ALL)))


def _hosts_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "is_same_host", lambda _named, _host: True)


def _everyone_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "EVERYONE", "User:nobody")


def _other_name_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "_ANY_NAME", "another")


def _removal_takes_all_of_the_principal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As CVE-2024-27309: one rule is removed, and others of the resource are forgotten with it."""
    remove = AclDraft.remove

    def remove_more(draft: AclDraft, binding: AclBinding) -> bool:
        for other in [each for each in draft._bindings if each[:4] == binding[:4]]:
            remove(draft, other)
        return True

    monkeypatch.setattr(AclDraft, "remove", remove_more)


FAULTS = [
    _without_implied_describe,
    _hosts_ignored,
    _everyone_forgotten,
    _other_name_for_any,
    _removal_takes_all_of_the_principal,
]


@pytest.mark.parametrize("plant", FAULTS)
def test_a_planted_fault_is_found(plant: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(plant)
    plant(monkeypatch)
    assert differing_seeds()


@pytest.mark.jvm
@pytest.mark.oracle
@pytest.mark.timeout(600)
def test_apache_kafka_decides_alike(jvm: None, request: pytest.FixtureRequest) -> None:
    count = 0
    rows = []
    with JsonSession("odradek.AclSession") as kafka:
        for seed in range(ORACLE_CASES):
            case = random_case(seed, REQUESTS)
            decided = kafka.call(case.as_question())["decisions"]
            ours = decisions_of(case)
            differing = [
                (asked, theirs)
                for asked, theirs, own in zip(case.requests, decided, ours, strict=True)
                if theirs is not own
            ]
            assert not differing, (seed, differing, case)
            count += len(decided)
            if seed in RECORDED_SEEDS:
                rows.append(as_row(seed, case, decided))
    if request.config.getoption("--update"):
        RECORDED.write_text("".join(row + "\n" for row in rows))
    print(f"{count} decisions, 0 differences")
    assert count == ORACLE_CASES * REQUESTS
    assert RECORDED.read_text().splitlines() == rows
