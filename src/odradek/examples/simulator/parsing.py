"""Parses `simulator.yml` into a simulation; reports all problems together, with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.examples.declared_fields import DeclaredFields, Span
from odradek.examples.simulator.model import Day, EntityState, Faults, Flaws, Simulation
from odradek.examples.simulator.parsing_faults import parse_fault, parse_flaw
from odradek.examples.simulator.parsing_signals import parse_signal
from odradek.examples.simulator.template import Template, TemplateCompiler, paths_of
from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar

if TYPE_CHECKING:
    from odradek.examples.simulator.model import Signal
    from odradek.pipelines.definition.places import Problems

KEYS = (
    "topic", "partitions", "rate", "seed", "entities", "key", "value", "signals", "day", "states", "faults", "flaws"
)  # fmt: skip
ENTITY_KEYS = ("name", "count", "first_id")
DAY_KEYS = ("peak", "shift")
STATE_KEYS = ("lasts", "next")
FAULTS_KEYS = ("every", "recovery", "kinds")
FLAWS_KEYS = ("late", "duplicate", "malformed")
SIGNAL_HINT = "signals: {pressure: {walk: {level: [90, 120], spread: 3}}}"
NO_TEMPLATE = Template("", (), (), has_text=False, is_json=True)
RESERVED = frozenset({"id", "number", "time", "time_ms", "state", "fault"})


def parse_simulation(root: Node, problems: Problems) -> Simulation | None:
    """The simulation, or None if there are errors."""
    simulation = SimulationParser(root, problems).parse()
    return None if problems.errors else simulation


class SimulationParser:
    def __init__(self, root: Node, problems: Problems) -> None:
        self._problems = problems
        self._root = DeclaredFields(root, KEYS, "the simulator", problems)

    def parse(self) -> Simulation:
        root = self._root
        topic = root.topic("topic")
        if "topic" not in root:
            root.missing("topic", "name the topic of the records")
        states = self._states()
        signals = self._signals({state.name for state in states})
        by_name = {signal.name: signal for signal in signals}
        compiler = TemplateCompiler({name: signal.is_text for name, signal in by_name.items()}, self._problems)
        entity, count, first_id = self._entities()
        return Simulation(
            topic or "",
            entity,
            count,
            first_id,
            self._key(compiler),
            self._value(compiler),
            signals,
            root.whole("partitions", 1, least=1),
            root.number("rate", 100.0, least=0.001),
            root.whole("seed", 1, least=-(2**63)),
            self._day(),
            states,
            self._faults(by_name),
            self._flaws(),
        )

    def _fields(self, key: str, keys: tuple[str, ...]) -> DeclaredFields | None:
        node = self._root.node(key)
        return None if node is None else DeclaredFields(node, keys, key, self._problems)

    def _entities(self) -> tuple[str, int, int]:
        fields = self._fields("entities", ENTITY_KEYS)
        if fields is None:
            self._root.missing("entities", "write entities: {name: pump, count: 300}")
            return "", 1, 1
        name = fields.text("name", required="say what one entity is called, such as pump")
        return name or "", fields.whole("count", 1, least=1), fields.whole("first_id", 1)

    def _key(self, compiler: TemplateCompiler) -> Template:
        node = self._root.node("key")
        if node is None:
            return compiler.text(Scalar("{id}", "{id}", self._root.place))
        if not isinstance(node, Scalar) or node.value is None:
            self._root.wrong("key", "text", 'write key: "{id}"')
            return NO_TEMPLATE
        return compiler.text(node)

    def _value(self, compiler: TemplateCompiler) -> Template:
        node = self._root.node("value")
        if node is None:
            self._root.missing("value", 'write the fields of a record: value: {pump: "{id}", at: "{time}"}')
            return NO_TEMPLATE
        if not isinstance(node, MappingNode):
            self._root.wrong("value", "a mapping of fields")
        return compiler.json(node)

    def _signals(self, states: set[str]) -> tuple[Signal, ...]:
        found: list[Signal] = []
        for key, node in self._root.entries("signals", "names to signals"):
            if key.text in RESERVED or not key.text.isidentifier():
                self._problems.error(
                    key.place,
                    f"a signal cannot be called '{key.text}'",
                    f"letters, digits and underscores, and none of {', '.join(sorted(RESERVED))}",
                )
                continue
            signal = parse_signal(key, node, [each.name for each in found if not each.is_text], states, self._problems)
            if signal is not None:
                found.append(signal)
        if not found and not self._problems.errors:
            self._root.missing("signals", SIGNAL_HINT)
        return tuple(found)

    def _day(self) -> Day | None:
        fields = self._fields("day", DAY_KEYS)
        if fields is None:
            return None
        return Day(fields.number("peak", 12.0, least=0, most=24) * 3600, fields.seconds("shift", 0.0))

    def _states(self) -> tuple[EntityState, ...]:
        entries = self._root.entries("states", "names to states")
        names = {key.text for key, _node in entries}
        found = []
        for key, node in entries:
            fields = DeclaredFields(node, STATE_KEYS, f"state '{key.text}'", self._problems)
            following = fields.weights("next")
            for name, _weight in following:
                if name not in names:
                    self._problems.error(fields.place_of("next"), f"there is no state '{name}'", "declare it")
            lasts = fields.seconds_span("lasts", required="write how long it lasts: lasts: [5 minutes, 1 hour]")
            found.append(EntityState(key.text, lasts or Span(1, 1), following))
        return tuple(found)

    def _faults(self, signals: dict[str, Signal]) -> Faults | None:
        fields = self._fields("faults", FAULTS_KEYS)
        if fields is None:
            return None
        kinds = [
            kind
            for key, node in fields.entries("kinds", "names to kinds of faults")
            if (kind := parse_fault(key, node, signals, self._problems)) is not None
        ]
        every_s, recovery_s = fields.seconds("every", 3600.0), fields.seconds("recovery", 1.0)
        for key, seconds in (("every", every_s), ("recovery", recovery_s)):
            if not seconds:
                fields.wrong(key, "longer than nothing")
        if not kinds and not self._problems.errors:
            fields.missing("kinds", "write kinds: {silence: {lasts: 1 minute, records: 0}}")
        return Faults(every_s or 1.0, recovery_s or 1.0, tuple(kinds))

    def _flaws(self) -> Flaws:
        fields = self._fields("flaws", FLAWS_KEYS)
        if fields is None:
            return Flaws()
        late = self._part(fields, "late", ("share", "by"))
        duplicate = self._part(fields, "duplicate", ("share",))
        malformed = self._part(fields, "malformed", ("share", "kinds"))
        value = self._root.node("value")
        paths = paths_of(value) if isinstance(value, MappingNode) else set()
        kinds = () if malformed is None else malformed.entries("kinds", "names to kinds of flaws")
        found = Flaws(
            0.0 if late is None else late.share("share"),
            None if late is None else late.seconds_span("by", required="write how late: by: [1 minute, 5 minutes]"),
            0.0 if duplicate is None else duplicate.share("share"),
            0.0 if malformed is None else malformed.share("share"),
            tuple(kind for key, node in kinds if (kind := parse_flaw(key, node, paths, self._problems)) is not None),
        )
        if found.late_share + found.duplicate_share + found.malformed_share > 1:
            self._problems.error(fields.place, "the shares of flaws are more than 1 in all", "lower one of them")
        if malformed is not None and found.malformed_share and not found.kinds:
            malformed.missing("kinds", "write kinds: {truncated: {cut: true}}")
        return found

    def _part(self, fields: DeclaredFields, key: str, keys: tuple[str, ...]) -> DeclaredFields | None:
        node = fields.node(key)
        return None if node is None else DeclaredFields(node, keys, f"flaws: {key}", self._problems)
