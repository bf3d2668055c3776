"""Sockets: listening, and writing responses without copying file bytes through Python, unless they are few.

`SocketWriter` writes straight to the descriptor of a transport, because uvloop has no `sendfile`: bytes go out with
`send`, file slices with `os.sendfile`, or, where an answer has few file bytes, copied into one `send`. When the socket
is full, or its turn is over, it waits for writability on a duplicate descriptor, since the event loop refuses a second
watcher on a descriptor that a transport owns. The duplicate is kept once it was needed. A connection that sends a lot
takes turns with the others, and pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import socket
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

from odradek.host.slices import FileSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.protocol.slices import Part

MORE_FOLLOWS = getattr(socket, "MSG_MORE", 0)  # Linux: hold a small header back until the file bytes follow
MANY_DESCRIPTORS = 1 << 20
COPIED_BYTES = 32 << 10  # file bytes of an answer up to which one copy takes less time than a system call for each part
TURN_BYTES = 256 << 10  # sent by one connection before the others get their turn
BURST_BYTES = 1 << 20  # sent by one connection, over several turns, before it pauses for others
REST_S = 0.001  # the pause; the resolution of event loop timers


# The first byte of Linux's `struct tcp_info` is the state of the connection.
_TCP_INFO = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
_TCP_CLOSE, _TCP_CLOSE_WAIT = 7, 8


def peer_has_closed(transport: asyncio.BaseTransport) -> bool:
    """Whether the peer has closed or reset the connection, also while nothing is read from it. On other systems than
    Linux it is noticed only when reading continues, so this is False."""
    pseudo: socket.socket | None = transport.get_extra_info("socket")
    if pseudo is None or _TCP_INFO is None:
        return False
    try:
        state = pseudo.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 1)[0]
    except OSError:
        return False
    return state in (_TCP_CLOSE, _TCP_CLOSE_WAIT)


class ShortAnswers:
    """The number of answers, over all connections, that were sent whole at once: a connection that sends a lot learns
    from it that others are active. Large answers do not count: they take turns, and a pause would only leave the
    processor idle."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class SocketWriter:
    """The output side of one connection: an ordered queue of bytes and file slices.

    `write` sends at once as much as the socket takes. `is_drained` says whether everything was sent; when a write
    could not finish, `on_progress` is called each time the peer has taken more, and `on_failed` when it is gone.
    """

    __slots__ = (
        "_burst_bytes",
        "_descriptor",
        "_is_watching",
        "_loop",
        "_on_failed",
        "_on_progress",
        "_rest",
        "_seen_count",
        "_short_answers",
        "_socket",
        "unsent",
    )

    def __init__(
        self,
        transport: asyncio.BaseTransport,
        loop: asyncio.AbstractEventLoop,
        short_answers: ShortAnswers,
        on_progress: Callable[[], None],
        on_failed: Callable[[OSError], None],
    ) -> None:
        pseudo: socket.socket = transport.get_extra_info("socket")
        # A second socket object on the same descriptor, not a duplicate: ten thousand idle connections
        # should cost ten thousand descriptors. `close` detaches it, so only the transport ever closes it.
        self._socket = socket.socket(pseudo.family, pseudo.type, pseudo.proto, fileno=pseudo.fileno())
        self._loop = loop
        self._short_answers = short_answers
        self._seen_count = short_answers.count
        self._burst_bytes = 0
        self._on_progress = on_progress
        self._on_failed = on_failed
        self.unsent: deque[memoryview | FileSlice] = deque()
        """What the socket has not taken. Others only look whether there is something (see `is_drained`)."""
        self._descriptor = -1
        self._is_watching = False
        self._rest: asyncio.TimerHandle | None = None

    @property
    def is_drained(self) -> bool:
        return not self.unsent

    @property
    def is_resting(self) -> bool:
        """There is more to send, after a pause for the others."""
        return self._rest is not None

    def write(self, parts: Sequence[Part]) -> None:
        """Queue one response and send what the socket takes now."""
        queue = self.unsent
        if not queue:
            if len(parts) == 1 and isinstance(parts[0], bytes):
                self._send_small(parts[0])
                return
            if _file_bytes(parts) <= COPIED_BYTES:
                self._send_copied(parts)
                return
        pending: list[Any] = []
        for part in parts:
            if isinstance(part, FileSlice):
                if pending:
                    queue.append(memoryview(b"".join(pending)))
                    pending = []
                queue.append(part)
            else:
                pending.append(part)
        if pending:
            queue.append(memoryview(b"".join(pending)))
        self._send_if_idle()

    def _send_copied(self, parts: Sequence[Part]) -> None:
        """An answer with few file bytes, as a consumer at the end of a log gets: one system call sends all of it."""
        try:
            copied: list[Any] = [_read(part) if isinstance(part, FileSlice) else part for part in parts]
        except OSError as error:
            self._on_failed(error)
            return
        self._send_small(b"".join(copied))

    def _send_if_idle(self) -> None:
        """Unless the socket is full, or others have their turn."""
        if not self._is_watching and not self.is_resting:
            self._send_queued()
            if self.is_drained:
                self._count_short_answer()

    def _send_small(self, data: bytes) -> None:
        """The common case, an answer without file bytes and nothing before it: one system call."""
        self._short_answers.count += 1
        self._seen_count += 1  # our own
        try:
            sent = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._on_failed(error)
            return
        if sent < len(data):
            self.unsent.append(memoryview(data)[sent:])
            self._watch()

    def _count_short_answer(self) -> None:
        self._short_answers.count += 1
        self._seen_count += 1  # our own

    def _send_queued(self) -> None:
        queue, budget = self.unsent, TURN_BYTES
        try:
            while queue and budget > 0:
                budget -= self._send_first(queue, budget)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.unsent.clear()
            self._unwatch()
            self._on_failed(error)
            return
        self._burst_bytes += TURN_BYTES - budget
        if not queue:
            self._unwatch()
        elif self._needs_rest():
            self._unwatch()
            self._rest = self._loop.call_later(REST_S, self._rested)
        else:
            self._watch()

    def _needs_rest(self) -> bool:
        """Without pauses its bytes would be sent as fast as the machine can, and others would wait for a processor."""
        if self._burst_bytes < BURST_BYTES:
            return False
        self._burst_bytes = 0
        seen, self._seen_count = self._seen_count, self._short_answers.count
        return seen != self._seen_count

    def _rested(self) -> None:
        self._rest = None
        self._writable()

    def _send_first(self, queue: deque[memoryview | FileSlice], budget: int) -> int:
        first = queue[0]
        if isinstance(first, FileSlice):
            size_bytes = min(first.size_bytes, budget)
            sent = os.sendfile(self._socket.fileno(), first.file.descriptor, first.position, size_bytes)
            if sent == 0:
                raise ended_early(first.size_bytes)
            if sent < first.size_bytes:
                queue[0] = FileSlice(first.file, first.position + sent, first.size_bytes - sent)
                return sent
        else:
            sent = self._socket.send(first[:budget], MORE_FOLLOWS if len(queue) > 1 else 0)
            if sent < len(first):
                queue[0] = first[sent:]
                return sent
        queue.popleft()
        return sent

    def _watch(self) -> None:
        if self._is_watching:
            return
        if self._descriptor < 0:
            self._descriptor = os.dup(self._socket.fileno())
        self._loop.add_writer(self._descriptor, self._writable)
        self._is_watching = True

    def _unwatch(self) -> None:
        if self._is_watching:
            self._loop.remove_writer(self._descriptor)
            self._is_watching = False

    def _writable(self) -> None:
        self._send_queued()
        if self._socket.fileno() >= 0:
            self._on_progress()

    def close(self) -> None:
        """Drop what was not sent; the transport closes the descriptor."""
        self.unsent.clear()
        self._unwatch()
        if self._rest is not None:
            self._rest.cancel()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._socket.detach()


def _file_bytes(parts: Sequence[Part]) -> int:
    return sum([part.size_bytes for part in parts if isinstance(part, FileSlice)])


def _read(part: FileSlice) -> bytes:
    data = part.read()
    if len(data) < part.size_bytes:
        raise ended_early(part.size_bytes - len(data))
    return data


def ended_early(missing_bytes: int) -> OSError:
    return OSError(f"the file ended {missing_bytes} bytes before the slice that was promised")


class CannotListen(OSError):
    """An address that cannot be bound; the message names it and says what to do."""

    def __init__(self, host: str, port: int, problem: OSError, setting: str = "listeners") -> None:
        address = f"{f'[{host}]' if ':' in host else host or '*'}:{port}"
        if problem.errno == errno.EADDRINUSE:
            reason, advice = "the port is in use", "stop what uses it, or set another port"
        else:
            reason = problem.strerror or str(problem)
            advice = "set an address of this machine, or leave the host out for every interface,"
        super().__init__(f"cannot listen on {address}: {reason}; {advice} in {setting}")


async def bind(
    protocol_factory: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    *,
    backlog: int,
    send_buffer_bytes: int | None,
    receive_buffer_bytes: int | None,
    setting: str = "listeners",
) -> asyncio.Server:
    """A server that has its address and accepts no connections before `start_serving`; CannotListen when the address
    cannot be bound, with the name of its setting. An empty host means every interface, port 0 one that the kernel
    picks.

    Buffer sizes of None leave them to the kernel, which tunes them to each connection better than any fixed number.
    """
    try:
        listening = _bound_socket(host, port)
    except OSError as problem:
        raise CannotListen(host, port, problem, setting) from problem
    if send_buffer_bytes is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    if receive_buffer_bytes is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    loop = asyncio.get_running_loop()
    return await loop.create_server(protocol_factory, sock=listening, backlog=backlog, start_serving=False)


def _bound_socket(host: str, port: int) -> socket.socket:
    """Bound, not listening. One socket also for every interface: two would get two ports where the kernel picks."""
    is_everywhere = not host and socket.has_dualstack_ipv6()
    wanted = "::" if is_everywhere else host or "0.0.0.0"
    family, kind, protocol, _, address = socket.getaddrinfo(wanted, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_everywhere:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


async def start_serving(server: asyncio.Server) -> None:
    """CannotListen when another process bound the same address at the same time."""
    host, port = server.sockets[0].getsockname()[:2]
    await server.start_serving()
    if any(listening.fileno() < 0 for listening in server.sockets):  # uvloop closes it without an error
        raise CannotListen(host, port, OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE)))


def raise_descriptor_limit() -> None:
    """Raise it to the hard limit, as the JVM does for Kafka: every connection and every partition needs a descriptor,
    and the usual 1,024 are too few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # then it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def bound_port(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


def machine_name() -> str:
    """The name by which others may reach this machine, for a listener bound to every interface.

    The loopback address if the host name does not resolve.
    """
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "127.0.0.1"
    return name


def run_on_fast_loop(main: Callable[[], Any]) -> Any:
    """Run a coroutine function on uvloop, the only event loop of the broker."""
    import uvloop  # noqa: PLC0415 - the simulated host never needs it

    return uvloop.run(main())
