"""Users, access rules and quotas: their lists, the check that explains, and the forms that change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.console.cluster import access
from odradek.console.context import console_of
from odradek.console.pages.forms import NO_FORM, Form, Routes, list_or_denial, make_change, page_number, search_text
from odradek.console.views import access as views
from odradek.console.views.figures import FormError, page_of
from odradek.console.web.rendering import redirect, render
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.login.logins import Logins

ROUTES = Routes()
LARGEST_NAME = 255
LARGEST_PASSWORD = 4096
LARGEST_FIELD = 500
MOST_RULES = 500
FILTERS = ("kind", "name", "applies", "principal")
QUESTION = ("principal", "operation", "kind", "name", "host")


@ROUTES.page("/access")
async def show_users(request: Request, _form: Form = NO_FORM, error: str = "") -> Response:
    console = console_of(request)
    search = search_text(request)
    number = page_number(request)
    no_credentials: list[access.Credential] = []
    credentials, denial = await list_or_denial(console, no_credentials, access.list_users)
    return render(
        request,
        "access_users.html",
        table="users",
        section="access",
        tab="users",
        page=page_of(views.user_rows(credentials, search), number),
        has_users=bool(credentials),
        search=search,
        mechanisms=access.MECHANISMS,
        denial=denial,
        error=error,
    )


@ROUTES.page("/access/user")
async def show_user(request: Request) -> Response:
    """The forms for one user."""
    name = parse_name(request.query_params.get("name", ""))
    return render(request, "access_user.html", section="access", tab="users", name=name)


def parse_name(text: str) -> str:
    if not 0 < len(text) <= LARGEST_NAME or not text.isprintable():
        raise FormError(f"the name of a user has 1 to {LARGEST_NAME} printable characters")
    return text


def parse_password(form: Form) -> str:
    """The password of a form, which has it twice."""
    password = form.raw("password") or ""
    if password != (form.raw("again") or ""):
        raise FormError("the two passwords differ")
    if not 0 < len(password) <= LARGEST_PASSWORD:
        raise FormError(f"a password has 1 to {LARGEST_PASSWORD} characters")
    return password


@ROUTES.form("/access/users", show_users)
async def add_user(request: Request, form: Form) -> Response:
    name, password = parse_name(form.text("name")), parse_password(form)
    mechanisms = [each for each in access.MECHANISMS if form.has(each)]
    if not mechanisms:
        raise FormError("choose a mechanism")
    change = f"add user {name} with {', '.join(mechanisms)}"
    await make_change(request, change, access.add_user, name, password, mechanisms)
    return redirect(request, "/access", f"Added user {name}.")


@ROUTES.form("/access/users/password", show_users)
async def change_password(request: Request, form: Form) -> Response:
    """The user logs in again everywhere: the connections of the sessions have the former password."""
    name, password = parse_name(form.text("name")), parse_password(form)
    await make_change(request, f"change the password of user {name}", access.change_password, name, password)
    if _end_sessions(request, name):
        return redirect(request, "/login", "Your password was changed. Log in with the new one.")
    return redirect(request, "/access", f"Changed the password of user {name}.")


@ROUTES.form("/access/users/remove", show_users)
async def remove_user(request: Request, form: Form) -> Response:
    name = form.text("name")
    if form.text("confirmation") != name:
        raise FormError(f"nothing was removed: type the name of the user, {name}, to confirm")
    await make_change(request, f"remove user {name}", access.remove_user, parse_name(name))
    if _end_sessions(request, name):
        return redirect(request, "/login", "Your user was removed.")
    return redirect(request, "/access", f"Removed user {name}.")


def _end_sessions(request: Request, user: str) -> bool:
    """End all sessions of a user; whether the session of this request is one of them."""
    logins = cast("Logins | None", request.app.state.logins)
    if logins is not None:
        logins.sessions.end_of_user(user)
    return bool(user) and getattr(request.state, "user", "") == user


@ROUTES.page("/access/rules")
async def show_rules(request: Request, form: Form = NO_FORM, error: str = "") -> Response:
    console = console_of(request)
    fields = {name: request.query_params.get(name, "")[:LARGEST_FIELD] for name in FILTERS}
    number = page_number(request)
    no_rules: list[access.AclBinding] = []
    rules, denial = await list_or_denial(console, no_rules, access.list_rules, views.rule_filters(fields))
    page = page_of(rules, number)
    return render(
        request,
        "access_rules.html",
        table="rules",
        section="access",
        tab="rules",
        page=page,
        rows=[views.rule_row(rule) for rule in page.rows],
        fields=fields,
        is_filtered=any(fields.values()),
        kinds=list(access.TYPES),
        operations=list(access.OPERATIONS),
        form=form,
        denial=denial,
        error=error,
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
async def show_check(request: Request) -> Response:
    """Without fields: the form alone."""
    error = ""
    answer: access.AccessAnswer | None = None
    if request.query_params.get("principal"):
        try:
            answer = await console_of(request).call(access.check, parse_question(request.query_params))
        except (Failure, FormError) as problem:
            error = str(problem)
    return render(
        request,
        "access_check.html",
        section="access",
        tab="check",
        fields={name: request.query_params.get(name, "")[:LARGEST_FIELD] for name in QUESTION},
        kinds=list(access.TYPES),
        operations=list(access.OPERATIONS),
        answer=answer,
        error=error,
    )


def parse_new_rules(form: Form) -> list[access.AclBinding]:
    """Failure for an operation and a resource that do not belong together."""
    topics, groups, ids = (tuple(filter(None, [form.text(each)])) for each in ("topic", "group", "transactional_id"))
    selection = access.Selection(topics, groups, ids, form.has("cluster"))
    return access.new_rules(
        selection,
        views.parse_access(form.text("role"), form.text("operation")),
        views.parse_principal(form.text("principal")),
        form.text("host"),
        access.Permission.DENY if form.text("permission") == "deny" else access.Permission.ALLOW,
        access.PatternType.PREFIXED if form.text("pattern") == "prefixed" else access.PatternType.LITERAL,
    )


@ROUTES.form("/access/rules", show_rules)
async def add_rules(request: Request, form: Form) -> Response:
    rules = parse_new_rules(form)
    sentences = "; ".join(map(access.describe, rules))
    await make_change(request, f"add rules: {sentences}", access.add_rules, rules)
    notice = f"Added {count_text(len(rules), 'rule')} for {rules[0].principal}."
    return redirect(request, "/access/rules", notice)


@ROUTES.form("/access/rules/remove", show_rules)
async def remove_rules(request: Request, form: Form) -> Response:
    """First the rules are shown, then exactly those are removed."""
    rules = views.parse_rules(form.all("rule"), MOST_RULES)
    if not form.has("confirmed"):
        rows = list(map(views.rule_row, rules))
        return render(request, "access_remove.html", section="access", tab="rules", rows=rows)
    sentences = "; ".join(map(access.describe, rules))
    count = await make_change(request, f"remove rules: {sentences}", access.remove_rules, rules)
    return redirect(request, "/access/rules", f"Removed {count_text(count, 'rule')}.")


@ROUTES.page("/access/quotas")
async def show_quotas(request: Request, form: Form = NO_FORM, error: str = "") -> Response:
    console = console_of(request)
    search = search_text(request)
    number = page_number(request)
    no_quotas: dict[access.Entity, dict[str, float]] = {}
    quotas, denial = await list_or_denial(console, no_quotas, access.list_quotas)
    return render(
        request,
        "access_quotas.html",
        table="quotas",
        section="access",
        tab="quotas",
        page=page_of(views.quota_rows(quotas, search), number),
        has_quotas=bool(quotas),
        search=search,
        entity_types=views.ENTITY_TYPES,
        keys=list(access.UNITS.items()),
        form=form,
        denial=denial,
        error=error,
    )


def parse_limit(text: str) -> float:
    try:
        return float(text.replace(",", "").replace(" ", ""))
    except ValueError:
        raise FormError(f"{text[:60]!r} is not a number") from None


@ROUTES.form("/access/quotas", show_quotas)
async def set_quota(request: Request, form: Form) -> Response:
    kinds = [kind for kind, _ in views.ENTITY_TYPES]
    names = {kind: form.text(kind)[:LARGEST_NAME] for kind in kinds}
    entity = views.new_entity(names, {kind: form.has(f"{kind}-default") for kind in kinds})
    key, limit = form.text("key"), parse_limit(form.text("limit"))
    change = f"quota of {access.entity_text(entity)}: {key} = {limit:g}"
    await make_change(request, change, access.set_quota, entity, key, limit)
    notice = f"{access.entity_text(entity)}: {key} = {views.quota_text(key, limit)}."
    return redirect(request, "/access/quotas", notice)


@ROUTES.form("/access/quotas/remove", show_quotas)
async def remove_quota(request: Request, form: Form) -> Response:
    entity, key = views.parse_entity(form.text("entity")), form.text("key")
    change = f"remove quota {key} of {access.entity_text(entity)}"
    await make_change(request, change, access.set_quota, entity, key, None)
    return redirect(request, "/access/quotas", f"Removed {key} of {access.entity_text(entity)}.")
