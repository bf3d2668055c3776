"""Users, access rules and quotas: their lists, the check that explains, and the forms that change them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from odradek.admin import acls, quotas, users
from odradek.console.pages.requests import Form, PageRequest, Routes
from odradek.console.views import access as views
from odradek.console.views.figures import FormError
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.security.acls.bindings import WILDCARD, AclBinding, PatternType, Permission
from odradek.security.authorizer import CLUSTER_NAME

if TYPE_CHECKING:
    from starlette.responses import Response

    from odradek.admin.cluster import Cluster
    from odradek.console.login.logins import Logins

ROUTES = Routes("access")
LARGEST_NAME = 255
LARGEST_PASSWORD = 4096
LARGEST_FIELD = 500
MOST_RULES = 500
FILTERS = ("kind", "name", "applies", "principal")
QUESTION = ("principal", "operation", "kind", "name", "host")


@ROUTES.page("/access")
async def show_users(request: PageRequest) -> Response:
    credentials, denial = await request.list_or_denial(users.read_users)
    return request.render(
        "access_users.html",
        page=request.page_of(views.user_rows(credentials or [], request.search)),
        has_users=bool(credentials),
        mechanisms=users.MECHANISMS,
        denial=denial,
    )


@ROUTES.page("/access/user")
async def show_user(request: PageRequest) -> Response:
    """The forms for one user."""
    return request.render("access_user.html", name=parse_name(request.query_params.get("name", "")))


def parse_name(text: str) -> str:
    if not 0 < len(text) <= LARGEST_NAME or not text.isprintable():
        raise FormError(f"the name of a user has 1 to {LARGEST_NAME} printable characters")
    return text


def parse_password(form: Form) -> str:
    """The password of a form, which has it twice."""
    password = form.raw("password")
    if password != form.raw("again"):
        raise FormError("the two passwords differ")
    if not 0 < len(password) <= LARGEST_PASSWORD:
        raise FormError(f"a password has 1 to {LARGEST_PASSWORD} characters")
    return password


@ROUTES.form("/access/users", show_users)
async def add_user(request: PageRequest) -> Response:
    name, password = parse_name(request.posted.text("name")), parse_password(request.posted)
    mechanisms = [each for each in users.MECHANISMS if request.posted.has(each)]
    if not mechanisms:
        raise FormError("choose a mechanism")
    change = f"add user {name} with {', '.join(mechanisms)}"
    await request.change(change, add_credentials, name, password, mechanisms)
    return request.redirect("/access", f"Added user {name}.")


@ROUTES.form("/access/users/password", show_users)
async def change_password(request: PageRequest) -> Response:
    """The user logs in again everywhere: the connections of the sessions have the former password."""
    name, password = parse_name(request.posted.text("name")), parse_password(request.posted)

    def replace(cluster: Cluster) -> None:
        """For all mechanisms that the user has."""
        iterations = {each.mechanism: each.iterations for each in credentials_of(cluster, name)}
        users.set_password(cluster, name, password, iterations)

    await request.change(f"change the password of user {name}", replace)
    if _end_sessions(request, name):
        return request.redirect("/login", "Your password was changed. Log in with the new one.")
    return request.redirect("/access", f"Changed the password of user {name}.")


@ROUTES.form("/access/users/remove", show_users)
async def remove_user(request: PageRequest) -> Response:
    name = request.posted.text("name")
    request.posted.confirm(name, "name of the user", "removed")
    parse_name(name)
    await request.change(
        f"remove user {name}", lambda cluster: users.remove_credentials(cluster, credentials_of(cluster, name))
    )
    if _end_sessions(request, name):
        return request.redirect("/login", "Your user was removed.")
    return request.redirect("/access", f"Removed user {name}.")


def add_credentials(cluster: Cluster, name: str, password: str, mechanisms: Sequence[str]) -> None:
    if users.read_users(cluster, [name]):
        raise Failure(f"user {name} exists; change its password instead")
    users.set_password(cluster, name, password, dict.fromkeys(mechanisms, users.DEFAULT_ITERATIONS))


def credentials_of(cluster: Cluster, name: str) -> list[users.Credential]:
    present = users.read_users(cluster, [name])
    if not present:
        raise Failure(f"there is no user {name} with SCRAM credentials")
    return present


def _end_sessions(request: PageRequest, user: str) -> bool:
    """End all sessions of a user; whether the session of this request is one of them."""
    logins = cast("Logins | None", request.app.state.logins)
    if logins is not None:
        logins.sessions.end_of_user(user)
    return bool(user) and getattr(request.state, "user", "") == user


@ROUTES.page("/access/rules")
async def show_rules(request: PageRequest) -> Response:
    fields = {name: request.query(name, LARGEST_FIELD) for name in FILTERS}
    rules, denial = await request.list_or_denial(acls.find, views.rule_filters(fields))
    page = request.page_of(rules or [])
    return request.render(
        "access_rules.html",
        page=page,
        rows=[views.rule_row(rule) for rule in page.rows],
        fields=fields,
        is_filtered=any(fields.values()),
        kinds=list(acls.TYPES),
        operations=list(acls.OPERATIONS),
        denial=denial,
    )


class AccessAnswer(NamedTuple):
    is_allowed: bool
    sentence: str
    reason: str
    note: str


def check_access(cluster: Cluster, fields: Mapping[str, str]) -> AccessAnswer:
    """The decision of `odradek acl check`. FormError for fields that ask no question."""
    kind, operation = fields.get("kind", "topic"), fields.get("operation", "Read")
    name = fields.get("name", "").strip()[:LARGEST_FIELD] if kind != "cluster" else CLUSTER_NAME
    if kind not in acls.TYPES or operation not in acls.OPERATIONS:
        raise FormError("choose an operation and a kind of resource")
    if not name:
        raise FormError(f"name the {kind}")
    principal = views.parse_principal(fields.get("principal", "").strip()[:LARGEST_FIELD])
    host = fields.get("host", "").strip()[:100] or WILDCARD
    found = acls.check_access(cluster, principal, acls.OPERATIONS[operation], acls.TYPES[kind], name, host)
    verb = "may" if found.decision.is_allowed else "may not"
    resource = "the cluster" if kind == "cluster" else f"{kind} {name}"
    note = found.unknown if found.knows_settings else acls.UNKNOWN_SETTINGS
    sentence = f"{principal} {verb} {operation} on {resource}"
    return AccessAnswer(found.decision.is_allowed, sentence, acls.explanation(found.decision, found.expression), note)


@ROUTES.page("/access/check")
async def show_check(request: PageRequest) -> Response:
    """Without fields: the form alone."""
    answer: AccessAnswer | None = None
    if request.query_params.get("principal"):
        try:
            answer = await request.console.call(check_access, request.query_params)
        except (Failure, FormError) as problem:
            request.error = str(problem)
    return request.render(
        "access_check.html",
        fields={name: request.query(name, LARGEST_FIELD) for name in QUESTION},
        kinds=list(acls.TYPES),
        operations=list(acls.OPERATIONS),
        answer=answer,
    )


def parse_new_rules(form: Form) -> list[AclBinding]:
    """Failure for an operation and a resource that do not belong together."""
    topics, groups, ids = (tuple(filter(None, [form.text(each)])) for each in ("topic", "group", "transactional_id"))
    selection = acls.Selection(topics, groups, ids, form.has("cluster"))
    access = views.parse_access(form.text("role"), form.text("operation"))
    principals, hosts = (views.parse_principal(form.text("principal")),), tuple(filter(None, [form.text("host")]))
    permission = Permission.DENY if form.text("permission") == "deny" else Permission.ALLOW
    pattern = PatternType.PREFIXED if form.text("pattern") == "prefixed" else PatternType.LITERAL
    problem = access.problem(selection) or acls.unsupported_operation(access, selection)
    if problem is not None:
        raise Failure(problem.replace("--", ""))
    return acls.bindings(selection, access, [acls.Subjects(principals, hosts, permission)], pattern)


@ROUTES.form("/access/rules", show_rules)
async def add_rules(request: PageRequest) -> Response:
    rules = parse_new_rules(request.posted)
    await request.change(f"add rules: {'; '.join(map(acls.describe, rules))}", acls.create, rules)
    return request.redirect("/access/rules", f"Added {count_text(len(rules), 'rule')} for {rules[0].principal}.")


@ROUTES.form("/access/rules/remove", show_rules)
async def remove_rules(request: PageRequest) -> Response:
    """First the rules are shown, then exactly those are removed."""
    rules = views.parse_rules(request.posted.all("rule"), MOST_RULES)
    if not request.posted.has("confirmed"):
        return request.render("access_remove.html", rows=list(map(views.rule_row, rules)))
    sentences = "; ".join(map(acls.describe, rules))
    removed = await request.change(f"remove rules: {sentences}", acls.delete, rules)
    return request.redirect("/access/rules", f"Removed {count_text(len(removed), 'rule')}.")


@ROUTES.page("/access/quotas")
async def show_quotas(request: PageRequest) -> Response:
    found, denial = await request.list_or_denial(quotas.read_quotas)
    return request.render(
        "access_quotas.html",
        page=request.page_of(views.quota_rows(found or {}, request.search)),
        has_quotas=bool(found),
        entity_types=views.ENTITY_TYPES,
        keys=list(quotas.UNITS.items()),
        denial=denial,
    )


def alter_quota(cluster: Cluster, entity: quotas.Entity, key: str, value: float | None) -> None:
    """Sets the quota, or removes it if the value is None."""
    known = quotas.KEYS_BY_TYPE[entity[0].type]
    if key not in known:
        raise Failure(f"{quotas.entity_text(entity)} has no quota {key}; it has {', '.join(known)}")
    if value is not None and not (math.isfinite(value) and value > 0):
        raise Failure(f"{key}: expected a number greater than 0")
    quotas.alter_quotas(cluster, entity, {key: value})


def parse_limit(text: str) -> float:
    try:
        return float(text.replace(",", "").replace(" ", ""))
    except ValueError:
        raise FormError(f"{text[:60]!r} is not a number") from None


@ROUTES.form("/access/quotas", show_quotas)
async def set_quota(request: PageRequest) -> Response:
    form = request.posted
    kinds = [kind for kind, _ in views.ENTITY_TYPES]
    names = {kind: form.text(kind)[:LARGEST_NAME] for kind in kinds}
    entity = views.new_entity(names, {kind: form.has(f"{kind}-default") for kind in kinds})
    key, limit = form.text("key"), parse_limit(form.text("limit"))
    change = f"quota of {quotas.entity_text(entity)}: {key} = {limit:g}"
    await request.change(change, alter_quota, entity, key, limit)
    notice = f"{quotas.entity_text(entity)}: {key} = {quotas.value_text(key, limit)}."
    return request.redirect("/access/quotas", notice)


@ROUTES.form("/access/quotas/remove", show_quotas)
async def remove_quota(request: PageRequest) -> Response:
    entity, key = views.parse_entity(request.posted.text("entity")), request.posted.text("key")
    change = f"remove quota {key} of {quotas.entity_text(entity)}"
    await request.change(change, alter_quota, entity, key, None)
    return request.redirect("/access/quotas", f"Removed {key} of {quotas.entity_text(entity)}.")
