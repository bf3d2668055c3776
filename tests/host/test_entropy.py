"""Ids that Kafka's tools can take on their command line."""

import base64
import uuid

from odradek.host.entropy import Entropy, SystemEntropy, is_usable_uuid


def test_no_id_begins_with_a_dash() -> None:
    entropy: Entropy = SystemEntropy()
    ids = {entropy.uuid() for _ in range(500)}
    assert len(ids) == 500
    assert not any(base64.urlsafe_b64encode(each.bytes).startswith(b"-") for each in ids)


def test_reserved_ids_are_not_usable() -> None:
    assert not is_usable_uuid(uuid.UUID(int=0))
    assert not is_usable_uuid(uuid.UUID(int=1))
    assert not is_usable_uuid(uuid.UUID(bytes=b"\xf8" + bytes(15)))
    assert is_usable_uuid(uuid.UUID(int=2))


def test_random_below_stays_below() -> None:
    assert {SystemEntropy().random_below(2) for _ in range(200)} == {0, 1}
