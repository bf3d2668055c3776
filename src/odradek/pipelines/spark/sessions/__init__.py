"""Spark's session: its settings and Java, its private names, the code of users, failures, files on its storage."""
