"""Checks of a cluster and of its security: facts are read first, then rules judge them."""
