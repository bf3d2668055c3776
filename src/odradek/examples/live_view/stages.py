"""What is starting before a live view has something to show: stages with their times."""

from __future__ import annotations

from dataclasses import field

from odradek.conventions.dataclass import dataclass


@dataclass(slots=True)
class Stage:
    """One stage. It is pending until it begins."""

    name: str
    began_s: float | None = None
    ended_s: float | None = None
    note: str = ""

    def seconds(self, now_s: float) -> float | None:
        if self.began_s is None:
            return None
        return max(0.0, (now_s if self.ended_s is None else self.ended_s) - self.began_s)


@dataclass(slots=True)
class Stages:
    """Stages that follow each other: the next begins when one ends. `picture` is what is being started."""

    stages: list[Stage]
    picture: list[str] = field(default_factory=list)

    @classmethod
    def named(cls, *names: str) -> Stages:
        return cls([Stage(name) for name in names])

    @property
    def current(self) -> Stage | None:
        return next((stage for stage in self.stages if stage.ended_s is None), None)

    @property
    def is_over(self) -> bool:
        return self.current is None

    def advance(self, now_s: float, note: str = "") -> Stage | None:
        """Ends the current stage and begins the next; the first call begins the first. Returns the ended stage."""
        current = self.current
        if current is None:
            return None
        if current.began_s is None:
            current.began_s = now_s
            return None
        current.ended_s, current.note = now_s, note or current.note
        following = self.current
        if following is not None:
            following.began_s = now_s
        return current

    def advance_to(self, name: str, now_s: float) -> bool:
        """Ends the stages before the named one; False if that has ended."""
        if not any(stage.name == name and stage.ended_s is None for stage in self.stages):
            return False
        while self.current is not None and self.current.name != name:
            self.advance(now_s)
        return True

    def note(self, text: str) -> None:
        if self.current is not None:
            self.current.note = text
