"""AlterUserScramCredentials, API 51: version 0."""

from odradek.protocol.schema import Request, Response, Struct, array, bytes_, int8, int16, int32, string


class ScramCredentialDeletion(Struct):
    name: str = string()
    mechanism: int = int8()


class ScramCredentialUpsertion(Struct):
    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = bytes_()
    salted_password: bytes = bytes_()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, mechanism={self.mechanism})"  # no secrets in logs


class AlterUserScramCredentialsRequest(Request, api_key=51, versions=(0, 0), flexible=0):
    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Struct):
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class AlterUserScramCredentialsResponse(Response, api_key=51, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
