"""Looks for consoles that serve everybody: on the console's default port of the brokers' hosts, over HTTP and HTTPS."""

from __future__ import annotations

import http.client
import ssl

from odradek.admin.doctor.cluster.reading import resolve
from odradek.conventions.addresses import is_loopback

TIMEOUT_S = 5.0
CONSOLE_PORT = 8484
MOST_BYTES = 8192
TITLE = b" \xc2\xb7 Odradek</title>"  # of every page of the console
SERVED_HOST = "localhost"  # a console without a login refuses the names of other hosts; a client chooses what it sends


def open_consoles(host: str) -> list[str]:
    """Addresses of consoles without a login, on the addresses of a host that other machines can reach."""
    try:
        addresses = [each for each in resolve(host, CONSOLE_PORT) if not is_loopback(each)]
    except OSError:
        return []
    found = (open_console(address, CONSOLE_PORT) for address in addresses)
    return [each for each in found if each is not None]


def open_console(address: str, port: int) -> str | None:
    """The address of a console that serves its first page without a login; None for anything else."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for scheme, connection in (
        ("http", http.client.HTTPConnection(address, port, timeout=TIMEOUT_S)),
        ("https", http.client.HTTPSConnection(address, port, timeout=TIMEOUT_S, context=context)),
    ):
        try:
            connection.request("GET", "/", headers={"Host": SERVED_HOST, "Connection": "close"})
            answer = connection.getresponse()
            is_open = answer.status == http.client.OK and TITLE in answer.read(MOST_BYTES)
            return f"{scheme}://{f'[{address}]' if ':' in address else address}:{port}/" if is_open else None
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()
    return None
