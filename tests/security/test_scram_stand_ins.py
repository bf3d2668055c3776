"""Users that do not exist look like those that do: iterations, salts, and the same at every attempt."""

import hypothesis.strategies as st
from hypothesis import given

from odradek.security.scram_credentials import ScramMechanism, credential_from_password
from odradek.security.scram_stand_ins import DEFAULT_SHAPE, shape_of, shapes_of, stand_in_credential

SHA_256 = ScramMechanism.SCRAM_SHA_256
KEY = b"key of the cluster"
KAFKA_SALT = b"1k5rm2qeeu1a8n0r2oe2k3nsjt"  # as Kafka's tools make them


def test_an_unknown_user_has_the_iterations_and_the_salt_of_a_real_one() -> None:
    real = credential_from_password(SHA_256, "x", KAFKA_SALT, 8192)
    unknown = stand_in_credential(SHA_256, KEY, "nobody", shapes_of([real]))
    assert shape_of(unknown) == shape_of(real)
    assert unknown.salt != real.salt


@given(st.text(max_size=20), st.sampled_from(ScramMechanism))
def test_each_name_has_its_own_salt_and_keeps_it(name: str, mechanism: ScramMechanism) -> None:
    shapes = shapes_of(credential_from_password(SHA_256, "x", salt, 4096) for salt in (KAFKA_SALT, b"\x00" * 64))
    first, again = (stand_in_credential(mechanism, KEY, name, shapes) for _ in range(2))
    assert first == again
    assert first.salt != stand_in_credential(mechanism, KEY, name + "x", shapes).salt
    assert first.salt != stand_in_credential(mechanism, b"another key", name, shapes).salt


def test_unknown_users_have_all_shapes_of_real_ones_and_few_change_theirs_when_one_is_added() -> None:
    reals = [credential_from_password(SHA_256, "x", b"\x01" * 32, each) for each in (4096, 5000, 6000, 7000)]
    names = [f"user-{index}" for index in range(400)]
    few = [shape_of(stand_in_credential(SHA_256, KEY, name, shapes_of(reals[:3]))) for name in names]
    all_ = [shape_of(stand_in_credential(SHA_256, KEY, name, shapes_of(reals))) for name in names]
    assert set(all_) == set(map(shape_of, reals))
    changed = [new for old, new in zip(few, all_, strict=True) if old != new]
    assert set(changed) == {shape_of(reals[3])}
    assert len(changed) < 150


def test_without_users_the_shape_is_that_of_a_user_that_odradek_makes() -> None:
    assert shape_of(stand_in_credential(SHA_256, KEY, "nobody", shapes_of([]))) == DEFAULT_SHAPE
