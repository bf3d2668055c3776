"""When a certificate begins and ceases to be valid."""

from __future__ import annotations

import datetime

from odradek.security.tls.distinguished_names import MalformedCertificate, certificate_fields, der_elements

_VALIDITY = 3
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18


def validity(certificate: bytes) -> tuple[datetime.datetime, datetime.datetime]:
    """The validity of a certificate in DER form; MalformedCertificate if it has none."""
    fields = certificate_fields(certificate)
    if len(fields) <= _VALIDITY:
        raise MalformedCertificate("the certificate has no validity")
    times = [_time(tag, content) for tag, _, content in der_elements(fields[_VALIDITY])]
    if len(times) != 2:
        raise MalformedCertificate("the validity of the certificate is malformed")
    return times[0], times[1]


def _time(tag: int, content: bytes) -> datetime.datetime:
    """UTCTime has two digits of the year, from 1950 to 2049 (RFC 5280); both are in UTC with seconds."""
    try:
        text = content.decode("ascii")
        if tag == _UTC_TIME:
            text = ("19" if int(text[:2]) >= 50 else "20") + text
        elif tag != _GENERALIZED_TIME:
            raise ValueError
        return datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.UTC)
    except ValueError:
        raise MalformedCertificate("a time of the certificate is malformed") from None
