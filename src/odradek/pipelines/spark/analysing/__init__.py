"""Asks Spark's analyzer about a plan over stand-ins of its sources, before anything runs."""
