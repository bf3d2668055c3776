"""Credentials in memory, for tests of SCRAM."""

from odradek.security.principals import Principal
from odradek.security.sasl.scram import TokenCredential
from odradek.security.scram_credentials import ScramCredential, ScramMechanism, credential_from_password
from odradek.security.scram_stand_ins import stand_in_credential

SALT = b"salt of sixteen."


class ScramUsers:
    def __init__(self, **passwords: str) -> None:
        self._credentials = {
            (mechanism, user): credential_from_password(mechanism, password, SALT)
            for user, password in passwords.items()
            for mechanism in ScramMechanism
        }

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        return self._credentials.get((mechanism, user))

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        if token_id != "token":
            return None
        credential = credential_from_password(mechanism, "token secret", SALT)
        return TokenCredential(credential, Principal("User", "owner"), 5000)

    def stand_in(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        return stand_in_credential(mechanism, b"key of the cluster", user)
