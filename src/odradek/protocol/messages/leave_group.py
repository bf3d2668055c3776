"""LeaveGroup, API 13: versions 0 to 5."""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, string


class MemberIdentity(Struct):
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)
    reason: str | None = string(versions="5+", nullable="5+", default=None)


class LeaveGroupRequest(Request, api_key=13, versions=(0, 5), flexible=4):
    group_id: str = string()
    member_id: str = string(versions="0-2")
    members: list[MemberIdentity] = array(MemberIdentity, versions="3+")


class MemberResponse(Struct):
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="3+")
    error_code: int = int16(versions="3+")


class LeaveGroupResponse(Response, api_key=13, versions=(0, 5), flexible=4):
    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, versions="3+")
