"""Random sequences of events under quotas, replayed by our rules or by Apache Kafka's quota managers."""

import random
from typing import Any

from odradek.security.quotas.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotas,
)
from odradek.security.quotas.mutation_quota import LimitedMutations
from odradek.security.quotas.precedence import QuotaEntity, QuotaLevels
from odradek.security.quotas.rate import QuotaWindow

Case = dict[str, Any]

START_MS = 1_700_000_000_000  # Kafka's token buckets are full a while after time 0
USERS = ("alice", "bob")
CLIENTS = ("app", "etl")
NAMES = {
    "produce": PRODUCER_BYTE_RATE,
    "fetch": CONSUMER_BYTE_RATE,
    "request": REQUEST_PERCENTAGE,
    "strict": CONTROLLER_MUTATION_RATE,
    "permissive": CONTROLLER_MUTATION_RATE,
}
LIMITS = {
    "produce": (500, 10_000, 1_048_576),
    "fetch": (500, 10_000, 1_048_576),
    "request": (0.5, 10, 200),
    "strict": (0.25, 1, 5),
    "permissive": (0.25, 1, 5),
}


def draw_case(seed: int) -> Case:
    chance = random.Random(seed)
    kind = chance.choice(sorted(NAMES))
    samples, window_seconds = chance.choice([(11, 1), (11, 1), (2, 1), (3, 5), (10, 2)])
    at = START_MS
    events: list[dict[str, Any]] = [_quota_change(chance, kind, at) for _ in range(chance.randint(1, 4))]
    configured: dict[QuotaEntity, dict[str, float]] = {}
    for event in events:
        _change(configured, event, NAMES[kind])
    for _ in range(chance.randint(5, 80)):
        at += chance.choice([0, 1, 7, chance.randint(1, 300), chance.randint(1, 3_000), chance.randint(1, 40_000)])
        if chance.random() < 0.05:
            events.append(_quota_change(chance, kind, at))
            _change(configured, events[-1], NAMES[kind])
            continue
        user, client = chance.choice(USERS), chance.choice(CLIENTS)
        if QuotaLevels(configured, NAMES[kind]).find(user, client) is None:
            continue  # Kafka measures clients without a quota too, if others have one; here they are not measured
        smallest = min(LIMITS[kind])
        value: float = chance.choice([1, 10, smallest * chance.uniform(0, 9), max(LIMITS[kind]) * chance.random()])
        if kind == "fetch":  # a fetch is cut to what the quota allows in all windows but one
            value = chance.uniform(0, smallest * (samples - 1) * window_seconds)
        elif kind in ("strict", "permissive"):
            value = chance.randint(1, 40)
        if kind in ("produce", "fetch"):
            value = int(value)
        events.append({"at": at, "user": user, "client": client, "value": value})
    return {"kind": kind, "samples": samples, "windowSeconds": window_seconds, "events": events}


def _quota_change(chance: random.Random, kind: str, at: int) -> dict[str, Any]:
    event: dict[str, Any] = {"at": at}
    parts = chance.choice([("user", "client"), ("user", "client"), ("user",), ("client",)])
    for part in parts:
        event[part] = chance.choice([None, *(USERS if part == "user" else CLIENTS)])
    event["limit"] = chance.choice([None, *LIMITS[kind], *LIMITS[kind]])
    return event


def replay(case: Case) -> list[int]:
    """The throttle time of each event by our rules."""
    window = QuotaWindow(case["samples"], case["windowSeconds"] * 1000)
    quotas = ClientQuotas(window, window)
    configured: dict[QuotaEntity, dict[str, float]] = {}
    throttles = []
    for event in case["events"]:
        if "limit" in event:
            _change(configured, event, NAMES[case["kind"]])
            quotas.update(configured)
            throttles.append(0)
        else:
            throttles.append(_record(case["kind"], quotas, event))
    return throttles


def _change(configured: dict[QuotaEntity, dict[str, float]], event: dict[str, Any], name: str) -> None:
    types = {"user": "user", "client": "client-id"}
    entity = frozenset((types[part], event[part]) for part in types if part in event)
    if event["limit"] is None:
        configured.pop(entity, None)
    else:
        configured[entity] = {name: event["limit"]}


def _record(kind: str, quotas: ClientQuotas, event: dict[str, Any]) -> int:
    if not quotas.is_active:
        return 0
    limits = quotas.limits_of(event["user"], event["client"])
    value, now_ms = event["value"], event["at"]
    if kind == "produce":
        return quotas.record_produce(limits, value, now_ms)
    if kind == "fetch":
        return quotas.record_fetch(limits, value, 0, now_ms).throttle_ms
    if kind == "request":
        return quotas.record_request_time(limits, value * 10, now_ms)  # a percentage as milliseconds of a second
    found = quotas.mutation_bucket(limits, now_ms)
    if found is None:
        return 0
    mutations = LimitedMutations(*found, lambda: now_ms, is_strict=kind == "strict")
    mutations.allows(value)
    return mutations.throttle_ms
