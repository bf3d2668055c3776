"""SaslHandshake, API 17: versions 0 to 1."""

from odradek.protocol.schema import Request, Response, array, int16, string


class SaslHandshakeRequest(Request, api_key=17, versions=(0, 1)):
    mechanism: str = string()


class SaslHandshakeResponse(Response, api_key=17, versions=(0, 1)):
    error_code: int = int16()
    mechanisms: list[str] = array(string())
