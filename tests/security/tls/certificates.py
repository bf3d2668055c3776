"""Certificate files for tests: a CA, a broker's certificate for this machine, and a client's."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from odradek.cli.certificate_authority import CertificateAuthority

HOSTS = ("localhost", "127.0.0.1", "::1")


@cache
def authority() -> CertificateAuthority:
    return CertificateAuthority("Test CA")


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    directory: Path
    ca: str
    broker: str
    client: str

    def listener_properties(self, client_auth: str = "required") -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.broker,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
            "ssl.client.auth": client_auth,
        }

    def client_properties(self) -> dict[str, str]:
        """For librdkafka."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": self.ca,
            "ssl.certificate.location": self.client,
            "ssl.key.location": self.client,
        }


def write_certificates(directory: Path, client_name: str = "alice") -> CertificateFiles:
    files = CertificateFiles(
        directory, str(directory / "ca.pem"), str(directory / "broker.pem"), str(directory / "client.pem")
    )
    Path(files.ca).write_text(authority().certificate_pem)
    Path(files.broker).write_text(authority().issue("broker", HOSTS))
    Path(files.client).write_text(authority().issue(client_name))
    return files
