"""`odradek produce` and `odradek consume`."""
