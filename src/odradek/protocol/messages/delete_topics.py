"""DeleteTopics, API 20: versions 1 to 6."""

from odradek.protocol.schema import UUID, Request, Response, Struct, array, int16, int32, string, topic_name, uuid


class DeleteTopicState(Struct):
    name: str | None = topic_name(versions="6+", nullable="6+", default=None)
    topic_id: UUID = uuid(versions="6+")


class DeleteTopicsRequest(Request, api_key=20, versions=(1, 6), flexible=4):
    topics: list[DeleteTopicState] = array(DeleteTopicState, versions="6+")
    topic_names: list[str] = array(topic_name(), versions="0-5")
    timeout_ms: int = int32()


class DeletableTopicResult(Struct):
    name: str | None = topic_name(nullable="6+")
    topic_id: UUID = uuid(versions="6+")
    error_code: int = int16()
    error_message: str | None = string(versions="5+", nullable="5+", default=None)


class DeleteTopicsResponse(Response, api_key=20, versions=(1, 6), flexible=4):
    throttle_time_ms: int = int32()
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
