"""What is chosen from outside of a definition: its profile and values of its parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILE_VARIABLE = "ODRADEK_PIPELINE_PROFILE"  # ODRADEK_PROFILE names a cluster


@dataclass(frozen=True, slots=True)
class Choices:
    """A profile and parameters, as `--profile` and `--set` name them."""

    profile: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    def chosen_profile(self, environment: Mapping[str, str]) -> str | None:
        return self.profile or environment.get(PROFILE_VARIABLE) or None


NO_CHOICES = Choices()
