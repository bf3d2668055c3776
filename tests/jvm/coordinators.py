"""Waits until the coordinators of a Kafka broker are there: it makes their topics when it is first asked for one, and
speaks of a coordinator before it is one. Clients ask again; tests that compare single answers must not meet it then.
"""

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.waiting import eventually
from tests.wire import connect

GROUP, TRANSACTION = 0, 1  # the kinds of coordinators
UNKNOWN = "unknown"


def await_coordinators(bootstrap_servers: str) -> None:
    with connect(bootstrap_servers) as client:

        def is_found(kind: int) -> bool:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[UNKNOWN])
            return client.call(request, FindCoordinatorResponse, 4).coordinators[0].error_code == ErrorCode.NONE

        def answers_members() -> bool:
            request = HeartbeatRequest(group_id=UNKNOWN, member_id=UNKNOWN, generation_id=0)
            return client.call(request, HeartbeatResponse, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID

        def gives_producer_ids(transactional_id: str | None) -> bool:
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
            return client.call(request, InitProducerIdResponse, 4).error_code == ErrorCode.NONE

        eventually(lambda: is_found(GROUP), "a coordinator of groups")
        eventually(answers_members, "answers of the coordinator of groups")
        eventually(lambda: is_found(TRANSACTION), "a coordinator of transactions")
        eventually(lambda: gives_producer_ids(UNKNOWN), "answers of the coordinator of transactions")
        eventually(lambda: gives_producer_ids(None), "ids for producers without transactions")
