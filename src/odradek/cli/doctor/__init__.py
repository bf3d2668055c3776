"""`odradek doctor`: checks of a cluster and of its security.

`cluster/` and `security/` have the facts that are read over the wire, and pure rules over them: one file per subject,
all listed in their `registry`.
"""
