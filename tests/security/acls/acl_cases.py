"""Random access control lists and requests on few names, so that many rules apply to each request."""

import json
import random
from typing import Any, NamedTuple

from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.acls.decisions import AccessRules, Actor, decide, decide_for_any
from odradek.security.acls.index import AclDraft, AclIndex
from odradek.security.authorizer import Operation, ResourceType

NAMES = ["a", "ab", "abc", "abd", "b", "ba", "hardcode", "har", "*"]
REQUESTED_NAMES = [*NAMES, "abcd", "c", "bab", "kafka-cluster"]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "Group:alice", "User:CN=a:b"]
# Apache Kafka has an exception for a client that is called User:*.
REQUESTING = ["User:alice", "User:bob", "Group:alice", "User:CN=a:b", "User:admin", "User:carol", "Group:admin"]
HOSTS = ["*", "127.0.0.1", "10.0.0.1"]
REQUESTING_HOSTS = ["127.0.0.1", "10.0.0.1", "10.0.0.2"]
TYPES = [each for each in ResourceType if each > ResourceType.ANY]
OPERATIONS = [each for each in Operation if each > Operation.ANY]
REQUESTED_OPERATIONS = [each for each in Operation if each > Operation.ALL]


class Request(NamedTuple):
    """Without a name it asks for any resource of the type."""

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str | None


class Case(NamedTuple):
    super_users: str
    allow_everyone: bool
    acls: list[AclBinding]
    removed: list[AclBinding]
    requests: list[Request]

    def as_question(self) -> dict[str, Any]:
        return {
            "superUsers": self.super_users,
            "allowEveryone": str(self.allow_everyone).lower(),
            "acls": self.acls,
            "removed": self.removed,
            "requests": self.requests,
        }

    def digest(self) -> str:
        return json.dumps(self.as_question())


def random_case(seed: int, requests: int) -> Case:
    """A case has one to three types and operations, so that its rules meet."""
    draw = random.Random(seed)
    types = draw.sample(TYPES, draw.randint(1, 2))
    operations = draw.sample(OPERATIONS, draw.randint(1, 5))
    acls = {
        AclBinding(
            draw.choice(types),
            draw.choice(NAMES),
            draw.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            draw.choice(PRINCIPALS),
            draw.choice(HOSTS),
            draw.choice(operations),
            draw.choices((Permission.ALLOW, Permission.DENY), (3, 1))[0],
        ): None
        for _ in range(draw.choice((0, 1, 3, 10, 30, 100)))
    }
    asked = [*operations, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, draw.choice(REQUESTED_OPERATIONS)]
    asked = [operation for operation in asked if operation is not Operation.ALL]
    return Case(
        super_users="User:admin;User:CN=a:b" if draw.random() < 0.2 else "User:admin",
        allow_everyone=draw.random() < 0.4,
        acls=list(acls),
        removed=[acl for acl in acls if draw.random() < 0.3],
        requests=[
            Request(
                draw.choice(REQUESTING),
                draw.choice(REQUESTING_HOSTS),
                draw.choice(asked),
                draw.choice(types if draw.random() < 0.9 else TYPES),
                None if draw.random() < 0.2 else draw.choice(REQUESTED_NAMES),
            )
            for _ in range(requests)
        ],
    )


def index_of(case: Case) -> AclIndex:
    draft = AclDraft(AclIndex())
    for acl in case.acls:
        draft.add(acl)
    draft = AclDraft(draft.finish())
    for acl in case.removed:
        draft.remove(acl)
    return draft.finish()


def decisions_of(case: Case) -> list[bool]:
    index = index_of(case)
    rules = AccessRules(frozenset(case.super_users.split(";")), case.allow_everyone)
    return [_decision(index, rules, request) for request in case.requests]


def _decision(index: AclIndex, rules: AccessRules, request: Request) -> bool:
    actor = Actor(request.principal, request.host)
    if request.name is None:
        return decide_for_any(index, rules, actor, request.operation, request.resource_type)
    return decide(index, rules, actor, request.operation, request.resource_type, request.name).is_allowed
