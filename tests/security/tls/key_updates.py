"""A client of TLS 1.3 that sends key updates, which Python's ssl cannot send: OpenSSL's own functions."""

from __future__ import annotations

import _ssl
import ctypes
import socket
import struct

NOT_REQUESTED = 0  # the peer need not answer with a key update of its own
PATIENCE_S = 20


def missing() -> str | None:
    if hasattr(ctypes.CDLL(_ssl.__file__), "SSL_key_update"):
        return None
    return "needs a Python whose ssl module is linked with OpenSSL dynamically"


def key_updates_until_closed(port: int, most: int) -> int:
    """How many key updates a client without a certificate can send before the server closes the connection."""
    openssl = ctypes.CDLL(_ssl.__file__)
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(openssl, name).restype = ctypes.c_void_p
    context = ctypes.c_void_p(openssl.SSL_CTX_new(ctypes.c_void_p(openssl.TLS_client_method())))
    tls = ctypes.c_void_p(openssl.SSL_new(context))
    try:
        with socket.create_connection(("127.0.0.1", port)) as plain:
            for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                plain.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", PATIENCE_S, 0))
            assert openssl.SSL_set_fd(tls, plain.fileno()) == 1
            assert openssl.SSL_connect(tls) == 1
            for sent in range(most):
                if openssl.SSL_key_update(tls, NOT_REQUESTED) != 1 or openssl.SSL_do_handshake(tls) != 1:
                    return sent
            return most
    finally:
        openssl.SSL_free(tls)
        openssl.SSL_CTX_free(context)
