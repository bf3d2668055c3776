"""The error codes are Kafka's, checked against the numbers that kafka-python knows."""

import warnings

from odradek.protocol.errors import ErrorCode


def test_every_code_that_kafka_python_knows_is_here() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka import errors
    numbers = [getattr(value, "errno", None) for value in vars(errors).values() if isinstance(value, type)]
    known = {number for number in numbers if isinstance(number, int)}
    assert len(known) > 100
    assert known <= {int(code) for code in ErrorCode}


def test_codes_have_kafkas_names() -> None:
    assert ErrorCode(0) is ErrorCode.NONE
    assert ErrorCode(-1) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ErrorCode(35) is ErrorCode.UNSUPPORTED_VERSION
    assert ErrorCode(45) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert ErrorCode(100) is ErrorCode.UNKNOWN_TOPIC_ID
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))
