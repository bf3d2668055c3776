"""Who is asking."""

from odradek.security.principals import ANONYMOUS, Principal


def test_a_connection_without_authentication_is_the_anonymous_user() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert Principal() == ANONYMOUS != Principal(name="alice")
