"""The contents of nodes are read back, and other bytes are malformed."""

from collections.abc import Callable

import pytest

from odradek.metadata.zookeeper_layout import (
    ChangeNode,
    Head,
    change_path,
    decode_change,
    decode_cluster_id,
    decode_controller,
    decode_epoch,
    decode_head,
    encode_change,
    encode_cluster_id,
    encode_controller,
    encode_head,
    parts_name,
    version_in,
)
from odradek.protocol.malformed import MalformedMessage


def test_contents_are_read_back() -> None:
    head = Head(7, 2, 5, "0000000005-a", 1, 100, 200)
    assert decode_head(encode_head(head)) == head
    for node in (ChangeNode(3, "token", 0, b"changes\nwith lines\n"), ChangeNode(3, "token", 4)):
        assert decode_change(encode_change(node)) == node
    assert decode_cluster_id(encode_cluster_id("id")) == "id"
    assert decode_controller(encode_controller(4, 1000)) == 4
    assert decode_epoch(b"12") == 12


def test_names_sort_by_version() -> None:
    assert change_path(9) < change_path(10) < change_path(1_000_000_000)
    assert version_in(parts_name(17, "token")) == 17


@pytest.mark.parametrize("decode", [decode_head, decode_change, decode_cluster_id, decode_controller, decode_epoch])
@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"{}", b"{}\n", b'{"format":1,"version":1,"x":2}', b'"text"'])
def test_other_bytes_are_malformed(decode: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(data)
