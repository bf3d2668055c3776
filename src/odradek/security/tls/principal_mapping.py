"""`ssl.principal.mapping.rules`: from a certificate's distinguished name to a principal's name, as Kafka maps it. Pure.

Rules are tried in order: DEFAULT keeps the name, RULE:pattern/replacement/[LU] replaces it if the pattern matches all
of it. Replacements have Java's syntax: $1 and ${name} are groups, a backslash makes the next character literal.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DEFAULT_RULES = "DEFAULT"

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)
_BACK_REFERENCE = re.compile(r"\$([0-9]+)")
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_DIGITS = "0123456789"


class InvalidRules(ValueError):
    pass


class NoMatchingRule(ValueError):
    """The certificate's name is mapped by no rule, or by one whose replacement is invalid."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None  # None for DEFAULT
    replacement: str
    change_case: str  # "L", "U" or ""


class PrincipalMapping:
    __slots__ = ("_rules",)

    def __init__(self, rules: str = DEFAULT_RULES) -> None:
        self._rules = _parse(rules)

    def name_of(self, distinguished_name: str) -> str:
        for rule in self._rules:
            name = _apply(rule, distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRule(f"no rule of ssl.principal.mapping.rules applies to {distinguished_name}")


def _parse(text: str) -> list[_Rule]:
    rules = []
    for split in _SPLITTER.finditer(text.strip()):
        match = _PARSER.match(split[1])
        if match is None or match.end() != len(split[1]):
            raise InvalidRules(f"invalid rule: {split[1]}")
        if match[1] is not None:
            rules.append(_Rule(None, "", ""))
        elif match[2] is not None:
            try:
                pattern = re.compile(_NAMED_GROUP.sub("(?P<", match[2]))
            except re.error as problem:
                raise InvalidRules(f"invalid rule: {split[1]}: {problem}") from None
            rules.append(_Rule(pattern, match[3], match[4]))
    return rules


def _apply(rule: _Rule, name: str) -> str | None:
    if rule.pattern is None:
        return name
    if rule.pattern.fullmatch(name) is None:
        return None
    replacement = _escape_unknown_groups(rule.replacement, rule.pattern.groups)
    result = _replace_all(rule.pattern, replacement, name)
    if rule.change_case == "L":
        return result.lower()
    return result.upper() if rule.change_case == "U" else result


def _replace_all(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    """As Java's String.replaceAll: unlike in `re.sub`, an empty match is not followed by one at the same position."""
    parts, copied, position = [], 0, 0
    while position <= len(text) and (match := pattern.search(text, position)) is not None:
        parts += [text[copied : match.start()], _expand(replacement, match)]
        copied = match.end()
        position = copied + 1 if match.start() == copied else copied
    return "".join([*parts, text[copied:]])


def _escape_unknown_groups(replacement: str, group_count: int) -> str:
    """Kafka takes a reference to a group that the pattern does not have literally, if the pattern has groups at all.
    Positions are those in the original text also after the first insertion, as in Kafka."""
    if group_count == 0:
        return replacement
    value = replacement
    for reference in _BACK_REFERENCE.finditer(replacement):
        digits = reference[1]
        if digits.startswith("0"):
            continue
        number = int(digits[:10])
        while number > group_count and number >= 10:
            number //= 10
        if number > group_count:
            place = reference.start(1) - 1
            value = value[:place] + "\\" + value[place:]
    return value


def _expand(replacement: str, match: re.Match[str]) -> str:
    """The replacement as Java's Matcher.appendReplacement builds it."""
    parts, position, end = [], 0, len(replacement)
    while position < end:
        each = replacement[position]
        position += 1
        if each == "\\":
            if position == end:
                raise NoMatchingRule("a replacement in ssl.principal.mapping.rules ends in a backslash")
            parts.append(replacement[position])
            position += 1
        elif each == "$":
            position, text = _expand_group(replacement, position, match)
            parts.append(text)
        else:
            parts.append(each)
    return "".join(parts)


def _expand_group(replacement: str, position: int, match: re.Match[str]) -> tuple[int, str]:
    """Returns the position after the reference, and the text of its group."""
    invalid = NoMatchingRule(f"a replacement in ssl.principal.mapping.rules has an invalid reference: {replacement}")
    if replacement.startswith("{", position):
        close = replacement.find("}", position)
        name = replacement[position + 1 : close]
        if close < 0 or name not in match.re.groupindex:
            raise invalid
        return close + 1, match[name] or ""
    if position == len(replacement) or replacement[position] not in _DIGITS:
        raise invalid
    number = int(replacement[position])
    if number > match.re.groups:
        raise invalid
    position += 1
    while position < len(replacement) and replacement[position] in _DIGITS:  # as many digits as name a group
        longer = number * 10 + int(replacement[position])
        if longer > match.re.groups:
            break
        number, position = longer, position + 1
    return position, match[number] or ""
