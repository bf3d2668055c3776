"""The subject of a certificate in the form of RFC 2253, as Java's X500Principal.getName prints it. Pure.

It reads just as much DER as leads to the subject. OpenSSL has verified the certificate before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEQUENCE, _SET, _OBJECT_IDENTIFIER, _EXPLICIT_VERSION = 0x30, 0x31, 0x06, 0xA0
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
# UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString. Java reads the bytes of
# all of them as UTF-8.
_STRING_TAGS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
_ESCAPED = frozenset(',=+<>#;"\\')
_DEEPEST_LENGTH_BYTES = 4
_SUBJECT = 4


class MalformedCertificate(ValueError):
    pass


def subject_name(certificate: bytes) -> str:
    """The distinguished name of a certificate in DER form."""
    fields = certificate_fields(certificate)
    if len(fields) <= _SUBJECT:
        raise MalformedCertificate("the certificate has no subject")
    return name_text(fields[_SUBJECT])


def certificate_fields(certificate: bytes) -> list[bytes]:
    """Contents of serial number, signature, issuer, validity, subject and more, of a certificate in DER form."""
    body = der_content(certificate, _SEQUENCE)  # Certificate
    fields = list(der_elements(der_content(body, _SEQUENCE)))  # TBSCertificate
    has_version = bool(fields) and fields[0][0] == _EXPLICIT_VERSION
    return [content for _, _, content in (fields[1:] if has_version else fields)]


def name_text(content: bytes) -> str:
    """The text of a distinguished name, from the content of its DER sequence."""
    relative = [_relative_name(value) for tag, _, value in der_elements(content) if tag == _SET]
    return ",".join(reversed(relative))


def _relative_name(content: bytes) -> str:
    return "+".join(_attribute(value) for _, _, value in der_elements(content))


def _attribute(content: bytes) -> str:
    elements = list(der_elements(content))
    if len(elements) != 2 or elements[0][0] != _OBJECT_IDENTIFIER:
        raise MalformedCertificate("an attribute of the subject is malformed")
    identifier = _identifier_text(elements[0][2])
    tag, encoded, value = elements[1]
    keyword = _KEYWORDS.get(identifier)
    if keyword is None or tag not in _STRING_TAGS:
        return f"{keyword or identifier}=#{encoded.hex()}"
    return f"{keyword}={_escape(value.decode('utf-8', 'replace'))}"


def _escape(text: str) -> str:
    escaped = "".join("\\00" if each == "\0" else f"\\{each}" if each in _ESCAPED else each for each in text)
    stripped = escaped.strip(" \r")
    if len(stripped) == len(escaped):
        return escaped
    lead = len(escaped) - len(escaped.lstrip(" \r"))
    trail = lead + len(stripped)
    return "".join(f"\\{each}" if not lead <= place < trail else each for place, each in enumerate(escaped))


def _identifier_text(content: bytes) -> str:
    if not content:
        raise MalformedCertificate("an object identifier is empty")
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2) if numbers else 0
    return ".".join(map(str, [first, (numbers[0] if numbers else 0) - 40 * first, *numbers[1:]]))


def der_content(data: bytes, wanted: int) -> bytes:
    for tag, _, value in der_elements(data):
        if tag == wanted:
            return value
        break
    raise MalformedCertificate("the certificate is malformed")


def der_elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, encoding and content of each element, in order."""
    position = 0
    while position < len(data):
        start, tag = position, data[position]
        if position + 2 > len(data) or tag & 0x1F == 0x1F:
            raise MalformedCertificate("the certificate is malformed")
        length = data[position + 1]
        position += 2
        if length & 0x80:
            count = length & 0x7F
            if not 0 < count <= _DEEPEST_LENGTH_BYTES or position + count > len(data):
                raise MalformedCertificate("the certificate is malformed")
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        if position + length > len(data):
            raise MalformedCertificate("the certificate is malformed")
        yield tag, data[start : position + length], data[position : position + length]
        position += length
