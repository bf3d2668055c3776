"""These tests start brokers as users do."""

from tests.real_processes import brokers_are_not_forks

__all__ = ["brokers_are_not_forks"]
