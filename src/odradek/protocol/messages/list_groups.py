"""ListGroups, API 16: versions 0 to 5."""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, string


class ListGroupsRequest(Request, api_key=16, versions=(0, 5), flexible=3):
    states_filter: list[str] = array(string(), versions="4+")
    types_filter: list[str] = array(string(), versions="5+")


class ListedGroup(Struct):
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(versions="4+")
    group_type: str = string(versions="5+")


class ListGroupsResponse(Response, api_key=16, versions=(0, 5), flexible=3):
    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
