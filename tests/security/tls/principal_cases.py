"""Random distinguished names and mapping rules, the same for the same seed, and the answers of Java to some of them."""

import json
import random
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).with_name("expected_principals.json")
RECORDED_CASES = 150

_IDENTIFIERS = {
    "CN": "550403", "C": "550406", "L": "550407", "ST": "550408", "O": "55040a", "OU": "55040b", "STREET": "550409",
    "DC": "0992268993f22c640119", "UID": "0992268993f22c640101", "email": "2a864886f70d010901", "serial": "550405",
    "title": "55040c", "name": "550429",
}  # fmt: skip
_STRINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}
_TEXTS = [
    "alice", "Bob Smith", "a,b", " lead", "trail ", "#hash", "x=y+z", '"q"', "back\\slash", "<t>;", "é", "ñandú", "",
    "  ", "line\rend", "a#b", "Ünï, cödé",
]  # fmt: skip
_PIECES = [
    "CN=",
    ".*",
    "(.*)",
    "(.*?)",
    ",OU=",
    "([a-z]+)",
    "(?<who>[^,]+)",
    "$",
    "^",
    ",.*",
    "\\/",
    "[A-Z]*",
    "(",
    "\\d",
]
_REPLACEMENTS = [
    "$1",
    "$2",
    "$1@$2",
    "$1@$4",
    "$12",
    "${who}",
    "\\$1",
    "u-$1",
    "$",
    "x",
    "",
    "$0",
    "$1$3$4",
    "\\",
    "$01",
]
_NAMES = [
    "CN=alice,OU=users,O=acme", "CN=Bob Smith,OU=Admins", "CN=svc/kafka,L=x", "O=acme", "", "CN=a\\,b,OU=q",
    "OU=x+CN=y,C=DE", "CN=UPPER,O=lower",
]  # fmt: skip
_RULES = [
    "DEFAULT", "RULE:^CN=(.*?),OU=users.*$/$1/", "RULE:^CN=(.*?),OU=(.*?)(,.*)?$/$1@$2/L", "RULE:^.*CN=([^,]*).*$/$1/U",
    "RULE:CN=(\\w+).*/$1$5$1/", "RULE:.*/x/", "RULE:O=acme/y/, DEFAULT", "", "RULE:broken", "RULE:^CN=(.*)$/$1/Lextra",
]  # fmt: skip


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    return bytes([tag, size] if size < 128 else [tag, 0x82, size >> 8, size & 255]) + content


def _attribute(chance: random.Random) -> bytes:
    identifier = bytes.fromhex(chance.choice(list(_IDENTIFIERS.values())))
    text, tag = chance.choice(_TEXTS), chance.choice(list(_STRINGS))
    if _STRINGS[tag] == "ascii":
        text = text.encode("ascii", "ignore").decode()
    return _der(0x30, _der(0x06, identifier) + _der(tag, text.encode(_STRINGS[tag])))


def _name(chance: random.Random) -> bytes:
    relative = [
        _der(0x31, b"".join(_attribute(chance) for _ in range(chance.choice([1, 1, 1, 2]))))
        for _ in range(chance.randint(0, 4))
    ]
    return _der(0x30, b"".join(relative))


def _rules(chance: random.Random) -> str:
    rules = []
    for _ in range(chance.randint(1, 3)):
        if chance.random() < 0.4:
            rules.append(chance.choice(_RULES))
        else:
            pattern = "".join(chance.choice(_PIECES) for _ in range(chance.randint(1, 5)))
            rules.append(f"RULE:{pattern}/{chance.choice(_REPLACEMENTS)}/{chance.choice(['', 'L', 'U'])}")
    return chance.choice([",", ", ", " ,"]).join(rules)


def cases(count: int, seed: int = 1) -> list[dict[str, str]]:
    chance = random.Random(seed)
    found = []
    for index in range(count):
        if index % 2:
            found.append({"der": _name(chance).hex()})
        else:
            found.append({"rules": _rules(chance), "name": chance.choice(_NAMES)})
    return found


def recorded() -> list[dict[str, Any]]:
    return [dict(each) for each in json.loads(EXPECTED.read_text())]


def record(answers: list[dict[str, Any]]) -> None:
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in answers)
    EXPECTED.write_text(f"[\n{lines}\n]\n")
