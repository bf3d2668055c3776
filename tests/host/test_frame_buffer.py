"""Frames come out of a byte stream whole and in order, however it was cut, and nothing is reserved for a promise."""

import resource
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.host.frame_buffer import (
    MOST_HANDED_OVER,
    POOLED_SMALL_BYTES,
    SHARED_BYTES,
    SMALLEST_OWN_BYTES,
    FrameBuffer,
    InvalidFrameSize,
    ReceiveBuffers,
)

LIMIT = 100 << 20
STATM = Path("/proc/self/statm")


def receive(frames: FrameBuffer, data: bytes) -> list[bytes]:
    """What a connection does with bytes that arrived, with frames copied so that they outlive the buffer."""
    taken = []
    while data:
        room = frames.writable()
        assert len(room) > 0
        step = data[: len(room)]
        room[: len(step)] = step
        frames.filled(len(step))
        data = data[len(step) :]
        while (frame := frames.next_frame()) is not None:
            taken.append(bytes(frame))
        frames.settle()
    return taken


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * resource.getpagesize()


def owned_bytes(frames: FrameBuffer) -> int:
    return len(frames._buffer) if frames._is_own else 0


@given(
    bodies=st.lists(st.binary(min_size=8, max_size=3000), max_size=12),
    cuts=st.lists(st.integers(1, 5000), min_size=1, max_size=40),
)
def test_frames_come_out_whole_and_in_order_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(framed(body) for body in bodies)
    frames = FrameBuffer(ReceiveBuffers(), LIMIT)
    taken: list[bytes] = []
    place = 0
    for number in range(len(stream) + 1):
        size = cuts[number % len(cuts)]
        taken += receive(frames, stream[place : place + size])
        place += size
    assert taken == bodies
    assert owned_bytes(frames) == 0


@given(st.lists(st.binary(min_size=8, max_size=500), min_size=2, max_size=6))
def test_connections_share_a_buffer_without_mixing_their_bytes(bodies: list[bytes]) -> None:
    buffers = ReceiveBuffers()
    connections = [FrameBuffer(buffers, LIMIT) for _ in bodies]
    streams = [framed(body) for body in bodies]
    for connection, stream in zip(connections, streams, strict=True):
        assert receive(connection, stream[:7]) == []
    for connection, stream, body in zip(connections, streams, bodies, strict=True):
        assert receive(connection, stream[7:]) == [body]


def test_a_frame_larger_than_the_shared_buffer_is_received() -> None:
    body = bytes(range(256)) * (3 * SHARED_BYTES // 256)
    assert receive(FrameBuffer(ReceiveBuffers(), LIMIT), framed(body)) == [body]


def test_a_declared_size_reserves_nothing() -> None:
    frames = FrameBuffer(ReceiveBuffers(), LIMIT)
    receive(frames, struct.pack(">i", LIMIT) + b"abcd")
    assert owned_bytes(frames) <= SMALLEST_OWN_BYTES


@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc, which this system has not")
@pytest.mark.parametrize("arrived_bytes", [60_000, 80_000, 200_000])
def test_memory_grows_with_what_arrived_not_with_what_was_promised(arrived_bytes: int) -> None:
    buffers = ReceiveBuffers()
    promise = struct.pack(">i", LIMIT) + bytes(arrived_bytes)
    connections = [FrameBuffer(buffers, LIMIT) for _ in range(100)]
    receive(connections[0], promise)
    before = resident_bytes()
    for connection in connections[1:]:
        receive(connection, promise)
    assert resident_bytes() - before <= 2 * arrived_bytes * len(connections)
    for connection in connections:
        connection.release()
    assert resident_bytes() - before <= MOST_HANDED_OVER * SHARED_BYTES


@pytest.mark.parametrize("size", [0x7FFFFFFF, -1, 0, 7, LIMIT + 1, -(2**31)])
def test_impossible_sizes_are_refused_before_anything_is_allocated(size: int) -> None:
    frames = FrameBuffer(ReceiveBuffers(), LIMIT)
    with pytest.raises(InvalidFrameSize, match=r"socket\.request\.max\.bytes"):
        receive(frames, struct.pack(">i", size) + b"xxxxxxxx")


def test_who_sent_little_gets_no_large_buffer_that_another_gave_back() -> None:
    buffers = ReceiveBuffers()
    streaming, slow = (FrameBuffer(buffers, LIMIT) for _ in range(2))
    stream = framed(bytes(3 << 20))
    receive(streaming, stream[: 2 << 20])
    receive(streaming, stream[2 << 20 :])
    receive(slow, stream[:10])
    assert owned_bytes(slow) <= SMALLEST_OWN_BYTES


def test_few_slow_clients_have_a_large_buffer_each() -> None:
    buffers = ReceiveBuffers()
    slow = [FrameBuffer(buffers, LIMIT) for _ in range(50)]
    for connection in slow:
        receive(connection, framed(bytes(1 << 20))[:100_000])
    assert sum(map(owned_bytes, slow)) <= MOST_HANDED_OVER * SHARED_BYTES + 50 * 4 * 2 * 100_000
    for connection in slow:
        connection.release()
    receive(slow[0], framed(bytes(1 << 20))[:100_000])
    assert owned_bytes(slow[0]) == SHARED_BYTES, "what was given back can be had again"


def test_buffers_are_given_back_and_used_again() -> None:
    frames = FrameBuffer(ReceiveBuffers(), LIMIT)
    stream = framed(bytes(300_000))
    used = []
    for _ in range(5):
        receive(frames, stream[:200_000])
        used.append(frames._buffer.obj)
        receive(frames, stream[200_000:])
    assert len({id(memory) for memory in used}) <= 2


def test_large_frames_one_after_another_are_received_into_the_same_pages() -> None:
    frames = FrameBuffer(ReceiveBuffers(), LIMIT)
    stream = framed(bytes(6 << 20))
    used = []
    for _ in range(4):
        receive(frames, stream[: 5 << 20])
        used.append(frames._buffer.obj)
        receive(frames, stream[5 << 20 :])
    assert len({id(memory) for memory in used}) == 1


def test_a_buffer_that_is_returned_while_frames_are_handled_does_not_mix_bytes() -> None:
    buffers = ReceiveBuffers()
    lost, busy, other = (FrameBuffer(buffers, LIMIT) for _ in range(3))
    assert receive(lost, framed(bytes(300_000))[:100_000]) == []
    body = bytes(range(256)) * 1000
    stream = framed(body)
    busy.writable()[:100_000] = stream[:100_000]
    busy.filled(100_000)
    lost.release()
    assert busy.settle()
    assert receive(other, framed(b"\xff" * 200_000)[:-1]) == []
    assert receive(busy, stream[100_000:]) == [body]


@given(st.lists(st.binary(min_size=8, max_size=300_000), min_size=2, max_size=4), st.integers(1, 200_000))
def test_a_buffer_that_was_handed_over_has_one_owner(bodies: list[bytes], cut: int) -> None:
    """Large unfinished frames keep the buffer that they came in; others get another, and never see these bytes."""
    buffers = ReceiveBuffers()
    connections = [FrameBuffer(buffers, LIMIT) for _ in bodies]
    streams = [framed(body) for body in bodies]
    taken = [receive(connection, stream[:cut]) for connection, stream in zip(connections, streams, strict=True)]
    for place, (connection, stream) in enumerate(zip(connections, streams, strict=True)):
        taken[place] += receive(connection, stream[cut:])
    assert taken == [[body] for body in bodies]


def test_a_read_that_brought_nothing_leaves_no_stale_buffer() -> None:
    buffers = ReceiveBuffers()
    idle, busy = FrameBuffer(buffers, LIMIT), FrameBuffer(buffers, LIMIT)
    idle.writable()  # the socket had nothing after all
    body = bytes(range(256)) * 1000
    stream = framed(body)
    assert receive(busy, stream[:100_000]) == []
    assert receive(idle, framed(b"\xff" * 200_000)) == [b"\xff" * 200_000]
    assert receive(busy, stream[100_000:]) == [body]


def test_a_lost_connection_gives_its_buffer_back() -> None:
    buffers = ReceiveBuffers()
    frames = FrameBuffer(buffers, LIMIT)
    receive(frames, framed(bytes(300_000))[:100_000])
    frames.release()
    assert owned_bytes(frames) == 0
    assert buffers._free


def test_the_buffers_that_are_kept_for_later_are_few() -> None:
    """An attack must not leave more than 16 MB behind."""
    buffers = ReceiveBuffers()
    taken = [buffers.take(SHARED_BYTES) for _ in range(4)] + [buffers.take(1 << 20) for _ in range(16)]
    for buffer in taken:
        buffer[:] = bytes(len(buffer))
        buffers.give(buffer)
    kept = {id(buffers.take(size)) for size in (SHARED_BYTES, 1 << 20) for _ in range(20)} & set(map(id, taken))
    sizes = {id(buffer): len(buffer) for buffer in taken}
    assert sum(sizes[each] for each in kept) <= 12 << 20


def test_the_small_buffers_that_are_kept_for_later_take_little_memory() -> None:
    """Of peers that declare a large frame, send a part of it and leave, again and again."""
    buffers = ReceiveBuffers()
    for _ in range(4):
        peers = [FrameBuffer(buffers, LIMIT) for _ in range(64)]
        for part in (struct.pack(">i", LIMIT), *[bytes(4_000)] * 20):
            for peer in peers:
                assert receive(peer, part) == []
        for peer in peers:
            peer.release()
    assert sum(map(len, buffers._free)) <= POOLED_SMALL_BYTES


@pytest.mark.parametrize("size_bytes", [8 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20])
def test_buffers_of_every_size_below_the_shared_one_count(size_bytes: int) -> None:
    buffers = ReceiveBuffers()
    for buffer in [buffers.take(size_bytes) for _ in range(2 * POOLED_SMALL_BYTES // size_bytes)]:
        buffers.give(buffer)
    assert sum(map(len, buffers._free)) == POOLED_SMALL_BYTES
    buffers.give(buffers.take(SHARED_BYTES))
    assert sum(map(len, buffers._free)) == POOLED_SMALL_BYTES + SHARED_BYTES, "one large buffer has room besides"


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_connection_does_not_keep_the_buffer_of_its_last_frame(is_closed: bool) -> None:
    """Neither its own one nor a shared one. Objects of closed connections may live until garbage is collected."""
    frames = FrameBuffer(ReceiveBuffers(), LIMIT)
    receive(frames, framed(bytes(2 * SHARED_BYTES))[: -1 if is_closed else None])
    if is_closed:
        frames.release()
    assert len(frames._buffer) == 0
