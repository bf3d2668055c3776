"""A client without a certificate that does what Python's ssl cannot: key updates of TLS 1.3, and handshakes in the
middle of a connection of TLS 1.2. It calls OpenSSL's own functions."""

import _ssl
import ctypes
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NOT_REQUESTED = 0  # the peer need not answer with a key update of its own
SET_MAX_VERSION, TLS_1_2, TLS_1_3 = 124, 0x0303, 0x0304
PATIENCE_S = 20


def missing() -> str | None:
    if hasattr(ctypes.CDLL(_ssl.__file__), "SSL_key_update"):
        return None
    return "needs a Python whose ssl module is linked with OpenSSL dynamically"


@contextmanager
def _connected(port: int, version: int) -> Iterator[tuple[Any, ctypes.c_void_p]]:
    """OpenSSL, and the TLS object of a connection."""
    openssl = ctypes.CDLL(_ssl.__file__)
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(openssl, name).restype = ctypes.c_void_p
    context = ctypes.c_void_p(openssl.SSL_CTX_new(ctypes.c_void_p(openssl.TLS_client_method())))
    openssl.SSL_CTX_ctrl(context, SET_MAX_VERSION, ctypes.c_long(version), None)
    tls = ctypes.c_void_p(openssl.SSL_new(context))
    try:
        with socket.create_connection(("127.0.0.1", port)) as plain:
            for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                plain.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", PATIENCE_S, 0))
            assert openssl.SSL_set_fd(tls, plain.fileno()) == 1
            assert openssl.SSL_connect(tls) == 1
            yield openssl, tls
    finally:
        openssl.SSL_free(tls)
        openssl.SSL_CTX_free(context)


def key_updates_until_closed(port: int, most: int) -> int:
    """How many key updates the client can send before the server closes the connection."""
    with _connected(port, TLS_1_3) as (openssl, tls):
        for sent in range(most):
            if openssl.SSL_key_update(tls, NOT_REQUESTED) != 1 or openssl.SSL_do_handshake(tls) != 1:
                return sent
    return most


def renegotiates(port: int) -> bool:
    """Whether the server takes part in a second handshake of a connection of TLS 1.2."""
    with _connected(port, TLS_1_2) as (openssl, tls):
        assert openssl.SSL_renegotiate(tls) == 1
        return bool(openssl.SSL_do_handshake(tls) == 1)
