"""Logins: sessions with the connections of their users, limits on attempts, and OpenID Connect."""
