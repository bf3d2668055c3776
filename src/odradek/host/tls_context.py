"""TLS contexts of OpenSSL, made of PEM texts. The private key is never in a file that has a name, where that can be."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def make_context(
    *,
    is_server: bool,
    certificates: str | None,
    key: str | None,
    key_password: str | None,
    trusted: str | None,
    verification: ssl.VerifyMode,
    checks_host_name: bool,
    protocols: Sequence[str],
    ciphers: str | None,
) -> ssl.SSLContext:
    """`ssl.SSLError` when OpenSSL refuses something. Blocks: it may read files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    versions = sorted(VERSIONS[name] for name in protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if is_server:
        context.num_tickets = 1  # each costs a tenth of a handshake, and clients use one
    if ciphers is not None:
        context.set_ciphers(ciphers)
    context.check_hostname = checks_host_name and not is_server
    context.verify_mode = verification
    if key is not None and certificates is not None:
        with _unnamed_file(key + certificates) as path:
            # Without a function OpenSSL would ask for the password of an encrypted key at the terminal.
            context.load_cert_chain(path, password=lambda: key_password or "")
    if trusted is not None:
        context.load_verify_locations(cadata=trusted)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java, each of them is trusted, not only roots
    elif verification is not ssl.CERT_NONE:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH if is_server else ssl.Purpose.SERVER_AUTH)
    return context


@contextlib.contextmanager
def _unnamed_file(text: str) -> Iterator[str]:
    """The path of a file with this content, for OpenSSL, which reads keys from files only."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("odradek-key", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile("w", prefix="odradek-key-") as file:  # mode 0600
        file.write(text)
        file.flush()
        yield file.name
