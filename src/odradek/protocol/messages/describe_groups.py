"""DescribeGroups, API 15: versions 0 to 6."""

from odradek.protocol.schema import Request, Response, Struct, array, boolean, bytes_, int16, int32, string


class DescribeGroupsRequest(Request, api_key=15, versions=(0, 6), flexible=5):
    groups: list[str] = array(string())
    include_authorized_operations: bool = boolean(versions="3+")


class DescribedGroupMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(versions="4+", nullable="4+", default=None)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = bytes_()
    member_assignment: bytes = bytes_()


class DescribedGroup(Struct):
    error_code: int = int16()
    error_message: str | None = string(versions="6+", nullable="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(versions="3+", default=-(2**31))


class DescribeGroupsResponse(Response, api_key=15, versions=(0, 6), flexible=5):
    throttle_time_ms: int = int32(versions="1+")
    groups: list[DescribedGroup] = array(DescribedGroup)
