"""PEM texts on one line and on several, with other text around them."""

import pytest

from odradek.security.tls.pem import MalformedPem, pem_blocks
from tests.security.tls.certificates import authority


def test_text_on_one_line_is_the_same_certificate() -> None:
    text = authority().certificate_pem
    (block,) = pem_blocks(text)
    assert pem_blocks(text.replace("\n", " ")) == [block]
    assert block.is_certificate
    assert block.text == text


def test_blocks_keep_their_order_and_other_text_is_skipped() -> None:
    both = authority().issue("client")
    found = pem_blocks(f"Bag Attributes\n{both}\n trailing")
    assert [block.label for block in found] == ["PRIVATE KEY", "CERTIFICATE"]
    assert found[0].is_private_key


def test_malformed_block_is_reported_without_its_content() -> None:
    with pytest.raises(MalformedPem) as problem:
        pem_blocks("-----BEGIN PRIVATE KEY-----\nse?cret\n-----END PRIVATE KEY-----")
    assert "cret" not in str(problem.value)
