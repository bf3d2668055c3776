"""A refusal says which right to which resource the user lacks, for every face."""

from __future__ import annotations

import pytest

from odradek.admin.errors import NotAuthorized, broker_failure
from odradek.admin.settings import suggesting_names
from odradek.protocol.errors import ErrorCode

TOPIC, GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER, TRANSACTION = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("code", "subject", "operation", "needed"),
    [
        (TOPIC, "topic orders", "Create", "Create on topic orders"),
        (TOPIC, "topic orders, partition 3", "Read", "Read on topic orders"),
        (TOPIC, "settings of topic orders", "DescribeConfigs", "DescribeConfigs on topic orders"),
        (GROUP, "group billing", "Describe", "Describe on group billing"),
        (TOPIC, "group billing, orders-0", "Read", "Read on the topic"),
        (CLUSTER, "users", "Describe", "Describe on the cluster"),
        (TRANSACTION, "transaction billing-1", "Describe", "Describe on the transactional id"),
        (TOPIC, "topic orders", "", ""),
    ],
)
def test_a_refusal_names_the_right_and_the_resource(code: int, subject: str, operation: str, needed: str) -> None:
    failure = broker_failure(code, None, subject, operation)
    assert isinstance(failure, NotAuthorized)
    assert failure.needed == needed


def test_suggestions_for_names_leave_a_refusal_as_it_is() -> None:
    with pytest.raises(NotAuthorized) as refused, suggesting_names(["retention.ms"]):
        raise broker_failure(TOPIC, None, "topic orders", "Create")
    assert refused.value.needed == "Create on topic orders"
