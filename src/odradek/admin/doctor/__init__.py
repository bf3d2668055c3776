"""Checks of a cluster and of its security."""
