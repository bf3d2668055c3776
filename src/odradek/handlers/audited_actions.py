"""What the audit log says about requests that change metadata or remove records: one action for each resource.

Settings are named, their values are not: they may be secrets. Requests that were refused for lack of access are in the
log as denials.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from odradek.configuration.config_types import ConfigResourceType
from odradek.controller.metadata_writer import ChangeNotMade
from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Struct
from odradek.protocol.sentinels import NO_TOPIC_ID
from odradek.security.acls.bindings import PatternType, Permission
from odradek.security.audit.events import Action, joined_texts, pascal_case
from odradek.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from odradek.security.scram_credentials import ScramMechanism

if TYPE_CHECKING:
    import enum
    from collections.abc import Callable, Iterable

    from odradek.handlers.context import RequestContext

    Describe = Callable[[Any, Any], Iterable[Action]]
    """The actions of a request and its response."""

_DENIED = frozenset(error for error in ErrorCode if error.name.endswith("AUTHORIZATION_FAILED"))
_UNLOGGED = _DENIED | {ErrorCode.NOT_CONTROLLER}  # the latter is retried

_NAME_FIELDS = frozenset(
    {
        "name",
        "topic",
        "topic_id",
        "topic_names",
        "path",
        "paths",
        "group_id",
        "groups_names",
        "resource_name",
        "resource_name_filter",
        "principal",
        "principal_filter",
        "entity_name",
        "owner_principal_name",
        "broker_id",
        "feature",
    }
)
"""Fields of requests that name what is changed. None of them has a secret."""
_SETTINGS_FIELD = "configs"  # its names are not those of resources


def audited(handle: Callable[[Any, RequestContext], Any], describe: Describe) -> Callable[[Any, RequestContext], Any]:
    """A handler that writes what it has done to the audit log."""

    def handle_and_log(request: Any, context: RequestContext) -> Any:
        response = handle(request, context)
        if not context.services.audit.is_on:
            return response
        if inspect.isawaitable(response):
            return context.services.audited_requests.begin(_log_later(request, response, context))
        _log_actions(describe, request, response, context)
        return response

    async def _log_later(request: Any, awaited: Any, context: RequestContext) -> Any:
        try:
            response = await (awaited if context.meter is None else context.meter.measured(awaited))
            if inspect.isawaitable(response):
                response = await response  # it waited for a coordinator, and waits for something else
        except ChangeNotMade:  # the forwarder tries again, and the answer has a line
            raise
        except BaseException as problem:
            _log_unknown_outcome(request, problem, context)
            raise
        _log_actions(describe, request, response, context)
        return response

    return handle_and_log


def audited_preparation(
    prepare: Callable[[Any, RequestContext], Any], describe: Describe
) -> Callable[[Any, RequestContext], Any]:
    """The same for what a broker refuses before it forwards the rest."""

    async def prepare_and_log(request: Any, context: RequestContext) -> Any:
        remaining, refusals = await prepare(request, context)
        if context.services.audit.is_on:
            _log_actions(describe, request, refusals, context)
        return remaining, refusals

    return prepare_and_log


def _log_actions(describe: Describe, request: Any, response: Any, context: RequestContext) -> None:
    if getattr(request, "validate_only", False):
        return
    for action in describe(request, response):
        context.services.audit.performed(context.actor, action)


def _log_unknown_outcome(request: Any, problem: BaseException, context: RequestContext) -> None:
    """The request ended without a response. What it asked for may have been done. Long names are in several lines."""
    if not getattr(request, "validate_only", False):
        error = type(problem).__name__
        for names in joined_texts(dict.fromkeys(_names(request))):
            action = Action(context.api_name, "Request", names, error, is_open=True)
            context.services.audit.performed(context.actor, action)


def _names(value: object) -> Iterable[str]:
    """The names of the resources that a request names."""
    for field in type(value).fields if isinstance(value, Struct) else ():
        if field.name == _SETTINGS_FIELD:
            continue
        part = getattr(value, field.name)
        for each in part if isinstance(part, list) else (part,):
            if isinstance(each, Struct):
                yield from _names(each)
            elif field.name in _NAME_FIELDS and each not in (None, NO_TOPIC_ID):
                yield str(each)


def _actions(
    operation: str, resource_type: str, named: Iterable[tuple[str, int, dict[str, object] | None]]
) -> Iterable[Action]:
    for name, code, details in named:
        error = ErrorCode(code)
        if error not in _UNLOGGED:
            text = None if error is ErrorCode.NONE else error.name
            yield Action(operation, resource_type, name, text, details, is_open=error is ErrorCode.REQUEST_TIMED_OUT)


def create_topics(_request: Any, response: Any) -> Iterable[Action]:
    return _actions("Create", "Topic", ((each.name, each.error_code, None) for each in response.topics))


def delete_topics(_request: Any, response: Any) -> Iterable[Action]:
    topics = ((each.name or str(each.topic_id), each.error_code, None) for each in response.responses)
    return _actions("Delete", "Topic", topics)


def create_partitions(request: Any, response: Any) -> Iterable[Action]:
    counts = {topic.name: topic.count for topic in request.topics}
    topics = ((each.name, each.error_code, {"partitions": counts.get(each.name)}) for each in response.results)
    return _actions("Alter", "Topic", topics)


def create_streams(_request: Any, response: Any) -> Iterable[Action]:
    return _actions("Create", "Stream", ((each.path, each.error_code, None) for each in response.results))


def edit_streams(request: Any, response: Any) -> Iterable[Action]:
    changed: dict[str, list[str]] = {
        stream.path: [
            *(["partitions"] if stream.default_partitions else ()),
            *(["creates_topics"] if stream.creates_topics >= 0 else ()),
            *(setting.name for setting in stream.settings),
            *(f"{permission.name}={permission.expression}" for permission in stream.permissions),
        ]
        for stream in request.streams
    }
    for each in response.results:
        details: dict[str, object] = {"settings": ",".join(changed.get(each.path, ()))}
        yield from _actions("Alter", "Stream", [(each.path, each.error_code, details)])


def delete_streams(_request: Any, response: Any) -> Iterable[Action]:
    return _actions("Delete", "Stream", ((each.path, each.error_code, None) for each in response.results))


def delete_records(request: Any, response: Any) -> Iterable[Action]:
    before = {(topic.name, each.partition_index): each.offset for topic in request.topics for each in topic.partitions}
    return _actions(
        "Delete",
        "Records",
        (
            (
                f"{topic.name}-{each.partition_index}",
                each.error_code,
                {"before_offset": before.get((topic.name, each.partition_index))},
            )
            for topic in response.topics
            for each in topic.partitions
        ),
    )


def alter_configs(request: Any, response: Any) -> Iterable[Action]:
    names = {
        (each.resource_type, each.resource_name): [config.name for config in each.configs] for each in request.resources
    }
    for each in response.responses:
        settings = ",".join(names.get((each.resource_type, each.resource_name), ()))
        kind = _name(ConfigResourceType, each.resource_type)
        yield from _actions("AlterConfigs", kind, [(each.resource_name, each.error_code, {"settings": settings})])


def alter_client_quotas(request: Any, response: Any) -> Iterable[Action]:
    """The response has one entry for each entity, however often the request names it."""
    changes: dict[frozenset[tuple[str, str | None]], list[str]] = {}
    for entry in request.entries:
        quotas = [f"{op.key}={'-' if op.remove else op.value}" for op in entry.ops]
        changes.setdefault(_quota_entity(entry), []).extend(quotas)
    for result in response.entries:
        entity = ",".join(f"{part.entity_type}={part.entity_name or '<default>'}" for part in result.entity)
        details: dict[str, object] = {"quotas": ",".join(changes.get(_quota_entity(result), ()))}
        yield from _actions("AlterConfigs", "ClientQuota", [(entity, result.error_code, details)])


def _quota_entity(entry: Any) -> frozenset[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in entry.entity)


def create_acls(request: Any, response: Any) -> Iterable[Action]:
    for creation, result in zip(request.creations, response.results, strict=False):
        details = _acl_details(creation, creation.resource_pattern_type)
        kind = _name(ResourceType, creation.resource_type)
        yield from _actions("CreateAcl", kind, [(creation.resource_name, result.error_code, details)])


def delete_acls(_request: Any, response: Any) -> Iterable[Action]:
    for result in response.filter_results:
        for acl in result.matching_acls:
            details = _acl_details(acl, acl.pattern_type)
            yield from _actions(
                "DeleteAcl", _name(ResourceType, acl.resource_type), [(acl.resource_name, acl.error_code, details)]
            )


def _acl_details(acl: Any, pattern_type: int) -> dict[str, object]:
    return {
        "pattern": _name(PatternType, pattern_type),
        "acl_principal": acl.principal,
        "acl_host": acl.host,
        "acl_operation": _name(Operation, acl.operation),
        "permission": _name(Permission, acl.permission_type),
    }


def alter_users(request: Any, response: Any) -> Iterable[Action]:
    mechanisms: dict[str, list[str]] = {}
    for change, entries in (("remove", request.deletions), ("set", request.upsertions)):
        for each in entries:
            mechanisms.setdefault(each.name, []).append(f"{change} {_mechanism(each.mechanism)}")
    for each in response.results:
        details: dict[str, object] = {"credentials": ",".join(mechanisms.get(each.user, ()))}
        yield from _actions("Alter", "User", [(each.user, each.error_code, details)])


def _mechanism(code: int) -> str:
    return ScramMechanism(code).mechanism_name if code in list(ScramMechanism) else str(code)


def delete_groups(_request: Any, response: Any) -> Iterable[Action]:
    return _actions("Delete", "Group", ((each.group_id, each.error_code, None) for each in response.results))


def offset_delete(request: Any, response: Any) -> Iterable[Action]:
    topics = ",".join(topic.name for topic in request.topics)
    return _actions("DeleteOffsets", "Group", [(request.group_id, response.error_code, {"topics": topics})])


def alter_partition_reassignments(_request: Any, response: Any) -> Iterable[Action]:
    partitions = ((topic.name, each) for topic in response.responses for each in topic.partitions)
    named = ((f"{topic}-{each.partition_index}", each.error_code, None) for topic, each in partitions)
    return _actions("Reassign", "Partition", named)


def alter_replica_log_dirs(request: Any, response: Any) -> Iterable[Action]:
    paths = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    partitions = ((topic.topic_name, each) for topic in response.results for each in topic.partitions)
    named = (
        (f"{topic}-{each.partition_index}", each.error_code, {"directory": paths.get((topic, each.partition_index))})
        for topic, each in partitions
    )
    return _actions("Alter", "LogDirectory", named)


def elect_leaders(_request: Any, response: Any) -> Iterable[Action]:
    partitions = ((topic.topic, each) for topic in response.replica_election_results for each in topic.partition_result)
    named = ((f"{topic}-{each.partition_id}", each.error_code, None) for topic, each in partitions)
    return _actions("Elect", "Partition", named)


def unregister_broker(request: Any, response: Any) -> Iterable[Action]:
    details: dict[str, object] = {"broker": request.broker_id}
    return _actions("UnregisterBroker", "Cluster", [(CLUSTER_NAME, response.error_code, details)])


def update_features(request: Any, response: Any) -> Iterable[Action]:
    named = ((each.feature, response.error_code, {"level": each.max_version_level}) for each in request.feature_updates)
    return _actions("Alter", "Feature", named)


def delegation_token(_request: Any, _response: Any) -> Iterable[Action]:
    """The handlers write the line: the id of a token is not in all responses."""
    return ()


def _name(kind: type[enum.IntEnum], code: int) -> str:
    try:
        return pascal_case(kind(code).name)
    except ValueError:
        return str(code)
