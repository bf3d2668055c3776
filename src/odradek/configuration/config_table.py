"""Parses tables of settings that are written as text, two lines for each setting.

The first line is `name TYPE default allowed mode [< synonyms]`, the second, indented, says in our words what it does.
`-` stands for no default, no rule, or read-only; `""` for an empty text or list. `allowed` is `[1,]`, `[2,10]`,
`{a,b}`, `~{a,b}` (any case) or the name of a rule of its own. `mode` is `cluster`, `broker` or `internal`.
"""

from collections.abc import Mapping

from odradek.configuration.config_types import (
    ConfigDefinition,
    ConfigType,
    Synonym,
    UpdateMode,
    Validator,
    Value,
    at_least,
    between,
    list_of,
    one_of,
    parse_value,
)

_MODES = {"cluster": UpdateMode.CLUSTER_WIDE, "broker": UpdateMode.PER_BROKER}


def read_table(text: str, rules: Mapping[str, Validator] | None = None) -> dict[str, ConfigDefinition]:
    lines = [line for line in text.splitlines() if line.strip()]
    definitions = [
        _read_definition(lines[index], lines[index + 1].strip(), rules or {}) for index in range(0, len(lines), 2)
    ]
    return {definition.name: definition for definition in sorted(definitions, key=lambda each: each.name)}


def _read_definition(line: str, doc: str, rules: Mapping[str, Validator]) -> ConfigDefinition:
    head, _, synonyms = line.partition(" < ")
    name, type_name, default, allowed, mode = head.split()
    config_type = ConfigType[type_name]
    return ConfigDefinition(
        name,
        config_type,
        _read_default(name, config_type, default),
        doc,
        validator=None if allowed == "-" else rules[allowed] if allowed in rules else _read_rule(allowed, config_type),
        synonyms=tuple(_read_synonym(synonym) for synonym in synonyms.split()),
        update_mode=_MODES.get(mode, UpdateMode.READ_ONLY),
        is_internal=mode == "internal",
    )


def _read_default(name: str, config_type: ConfigType, text: str) -> Value:
    if text == "-":
        return None
    return parse_value(name, config_type, "" if text == '""' else text)


def _read_synonym(text: str) -> Synonym:
    name, _, factor = text.partition("*")
    return Synonym(name, int(factor or 1))


def _read_rule(text: str, config_type: ConfigType) -> Validator:
    words = text.strip("~{}[]").split(",")
    if text.startswith("["):
        return between(_number(words[0]), _number(words[1])) if words[1] else at_least(_number(words[0]))
    if text.startswith("~"):
        return _one_of_any_case(words)
    return list_of(*words) if config_type is ConfigType.LIST else one_of(*words)


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def _one_of_any_case(words: list[str]) -> Validator:
    def check(value: Value) -> str | None:
        is_allowed = isinstance(value, str) and value.lower() in words
        return None if is_allowed else f"String must be one of (case insensitive): {', '.join(words)}"

    return check
