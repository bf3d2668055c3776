"""Users, access rules and quotas: their lists, the check that explains, and the forms that change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.console.cluster import access
from odradek.console.pages.requests import Form, PageRequest, Routes
from odradek.console.views import access as views
from odradek.console.views.figures import FormError
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

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
    credentials, denial = await request.list_or_denial(access.list_users)
    return request.render(
        "access_users.html",
        page=request.page_of(views.user_rows(credentials or [], request.search)),
        has_users=bool(credentials),
        mechanisms=access.MECHANISMS,
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
    mechanisms = [each for each in access.MECHANISMS if request.posted.has(each)]
    if not mechanisms:
        raise FormError("choose a mechanism")
    change = f"add user {name} with {', '.join(mechanisms)}"
    await request.change(change, access.add_user, name, password, mechanisms)
    return request.redirect("/access", f"Added user {name}.")


@ROUTES.form("/access/users/password", show_users)
async def change_password(request: PageRequest) -> Response:
    """The user logs in again everywhere: the connections of the sessions have the former password."""
    name, password = parse_name(request.posted.text("name")), parse_password(request.posted)
    await request.change(f"change the password of user {name}", access.change_password, name, password)
    if _end_sessions(request, name):
        return request.redirect("/login", "Your password was changed. Log in with the new one.")
    return request.redirect("/access", f"Changed the password of user {name}.")


@ROUTES.form("/access/users/remove", show_users)
async def remove_user(request: PageRequest) -> Response:
    name = request.posted.text("name")
    request.posted.confirm(name, "name of the user", "removed")
    await request.change(f"remove user {name}", access.remove_user, parse_name(name))
    if _end_sessions(request, name):
        return request.redirect("/login", "Your user was removed.")
    return request.redirect("/access", f"Removed user {name}.")


def _end_sessions(request: PageRequest, user: str) -> bool:
    """End all sessions of a user; whether the session of this request is one of them."""
    logins = cast("Logins | None", request.app.state.logins)
    if logins is not None:
        logins.sessions.end_of_user(user)
    return bool(user) and getattr(request.state, "user", "") == user


@ROUTES.page("/access/rules")
async def show_rules(request: PageRequest) -> Response:
    fields = {name: request.query(name, LARGEST_FIELD) for name in FILTERS}
    rules, denial = await request.list_or_denial(access.list_rules, views.rule_filters(fields))
    page = request.page_of(rules or [])
    return request.render(
        "access_rules.html",
        page=page,
        rows=[views.rule_row(rule) for rule in page.rows],
        fields=fields,
        is_filtered=any(fields.values()),
        kinds=list(access.TYPES),
        operations=list(access.OPERATIONS),
        denial=denial,
    )


def parse_question(fields: Mapping[str, str]) -> access.AccessQuestion:
    kind, operation = fields.get("kind", "topic"), fields.get("operation", "Read")
    name = fields.get("name", "").strip()[:LARGEST_FIELD]
    if kind not in access.TYPES or operation not in access.OPERATIONS:
        raise FormError("choose an operation and a kind of resource")
    if not name and kind != "cluster":
        raise FormError(f"name the {kind}")
    principal = views.parse_principal(fields.get("principal", "").strip()[:LARGEST_FIELD])
    return access.AccessQuestion(principal, operation, kind, name, fields.get("host", "").strip()[:100])


@ROUTES.page("/access/check")
async def show_check(request: PageRequest) -> Response:
    """Without fields: the form alone."""
    answer: access.AccessAnswer | None = None
    if request.query_params.get("principal"):
        try:
            answer = await request.console.call(access.check, parse_question(request.query_params))
        except (Failure, FormError) as problem:
            request.error = str(problem)
    return request.render(
        "access_check.html",
        fields={name: request.query(name, LARGEST_FIELD) for name in QUESTION},
        kinds=list(access.TYPES),
        operations=list(access.OPERATIONS),
        answer=answer,
    )


def parse_new_rules(form: Form) -> list[access.AclBinding]:
    """Failure for an operation and a resource that do not belong together."""
    topics, groups, ids = (tuple(filter(None, [form.text(each)])) for each in ("topic", "group", "transactional_id"))
    return access.new_rules(
        access.Selection(topics, groups, ids, form.has("cluster")),
        views.parse_access(form.text("role"), form.text("operation")),
        views.parse_principal(form.text("principal")),
        form.text("host"),
        access.Permission.DENY if form.text("permission") == "deny" else access.Permission.ALLOW,
        access.PatternType.PREFIXED if form.text("pattern") == "prefixed" else access.PatternType.LITERAL,
    )


@ROUTES.form("/access/rules", show_rules)
async def add_rules(request: PageRequest) -> Response:
    rules = parse_new_rules(request.posted)
    await request.change(f"add rules: {'; '.join(map(access.describe, rules))}", access.add_rules, rules)
    return request.redirect("/access/rules", f"Added {count_text(len(rules), 'rule')} for {rules[0].principal}.")


@ROUTES.form("/access/rules/remove", show_rules)
async def remove_rules(request: PageRequest) -> Response:
    """First the rules are shown, then exactly those are removed."""
    rules = views.parse_rules(request.posted.all("rule"), MOST_RULES)
    if not request.posted.has("confirmed"):
        return request.render("access_remove.html", rows=list(map(views.rule_row, rules)))
    sentences = "; ".join(map(access.describe, rules))
    count = await request.change(f"remove rules: {sentences}", access.remove_rules, rules)
    return request.redirect("/access/rules", f"Removed {count_text(count, 'rule')}.")


@ROUTES.page("/access/quotas")
async def show_quotas(request: PageRequest) -> Response:
    quotas, denial = await request.list_or_denial(access.list_quotas)
    return request.render(
        "access_quotas.html",
        page=request.page_of(views.quota_rows(quotas or {}, request.search)),
        has_quotas=bool(quotas),
        entity_types=views.ENTITY_TYPES,
        keys=list(access.UNITS.items()),
        denial=denial,
    )


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
    change = f"quota of {access.entity_text(entity)}: {key} = {limit:g}"
    await request.change(change, access.set_quota, entity, key, limit)
    notice = f"{access.entity_text(entity)}: {key} = {views.quota_text(key, limit)}."
    return request.redirect("/access/quotas", notice)


@ROUTES.form("/access/quotas/remove", show_quotas)
async def remove_quota(request: PageRequest) -> Response:
    entity, key = views.parse_entity(request.posted.text("entity")), request.posted.text("key")
    change = f"remove quota {key} of {access.entity_text(entity)}"
    await request.change(change, access.set_quota, entity, key, None)
    return request.redirect("/access/quotas", f"Removed {key} of {access.entity_text(entity)}.")
