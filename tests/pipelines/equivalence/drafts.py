"""A definition that is being drawn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from tests.pipelines.equivalence.cases import Deduplicate, Shape, Step, inputs_of

if TYPE_CHECKING:
    from tests.pipelines.equivalence.cases import Expectation, Operation, Sink, Source, View

Choice = TypeVar("Choice")


@dataclass
class Draft:
    """The parts that were drawn so far."""

    draw: st.DrawFn
    has_late_rows: bool = False
    has_later_duplicates: bool = False  # duplicates may be later events than the first
    is_realtime: bool = False
    is_stopping: bool = False  # an expectation stops the pipeline
    sources: list[Source] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    views: list[View] = field(default_factory=list)

    def one_of(self, *choices: Choice) -> Choice:
        return self.draw(st.sampled_from(choices))

    def filter(self, *choices: str) -> str | None:
        return self.one_of(None, *choices)

    def add(self, operation: Operation, shape: Shape, expectations: tuple[Expectation, ...] = ()) -> str:
        name = f"s{len(self.steps)}"
        self.steps.append(Step(name, operation, expectations))
        self.shapes[name] = replace(shape)
        return name

    def operation(self, name: str) -> Operation | None:
        return next((each.operation for each in self.steps if each.name == name), None)

    def upstream(self, name: str) -> set[str]:
        """A source or step, and those before it."""
        operation = self.operation(name)
        reads = () if operation is None else inputs_of(operation)
        return {name}.union(*(self.upstream(each) for each in reads))

    def readable(self) -> list[str]:
        """Sources and steps that a step may read: not a source whose watermark is that of a step."""
        without = {each.name for each in self.sources if each.delay_minutes is None}
        return [name for name in self.shapes if name not in without]

    @property
    def withins(self) -> list[int]:
        operations = [each.operation for each in self.steps]
        return [each.within_minutes for each in operations if isinstance(each, Deduplicate) and each.within_minutes]
