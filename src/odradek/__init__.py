"""Odradek, the streaming platform that you `pip install`."""

from odradek import deferred

deferred.install()

__version__ = "0.1.0"
