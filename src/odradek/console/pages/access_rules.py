"""Access rules: the list with filters, the check that explains, and the forms that add and remove rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from odradek.console.cluster import access
from odradek.console.cluster.connection import Failure
from odradek.console.context import console_of
from odradek.console.pages.changes import checked_form, make_change
from odradek.console.pages.forms import Form, FormError
from odradek.console.pages.listing import choose_template, list_or_denial, page_number
from odradek.console.views import access as views
from odradek.console.views.figures import plural
from odradek.console.views.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

MOST_RULES = 500
LARGEST_FIELD = 500
FILTERS = ("kind", "name", "applies", "principal")
QUESTION = ("principal", "operation", "kind", "name", "host")


async def show(request: Request) -> Response:
    return await _page(request, Form({}))


async def _page(request: Request, form: Form, error: str = "") -> Response:
    console = console_of(request)
    fields = {name: request.query_params.get(name, "")[:LARGEST_FIELD] for name in FILTERS}
    number = page_number(request)
    no_rules: list[access.AclBinding] = []
    rules, denial = await list_or_denial(console, no_rules, access.list_rules, views.rule_filters(fields))
    page = page_of(rules, number)
    template = choose_template(request, "access_rules", "rules")
    return console.renderer.page(
        request,
        template,
        422 if error else 200,
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
    """FormError for a field that cannot be used."""
    kind, operation = fields.get("kind", "topic"), fields.get("operation", "Read")
    name = fields.get("name", "").strip()[:LARGEST_FIELD]
    if kind not in access.TYPES or operation not in access.OPERATIONS:
        raise FormError("choose an operation and a kind of resource")
    if not name and kind != "cluster":
        raise FormError(f"name the {kind}")
    principal = views.parse_principal(fields.get("principal", "").strip()[:LARGEST_FIELD])
    return access.AccessQuestion(principal, operation, kind, name, fields.get("host", "").strip()[:100])


async def show_check(request: Request) -> Response:
    """Without fields: the form alone."""
    console = console_of(request)
    error = ""
    answer: access.AccessAnswer | None = None
    if request.query_params.get("principal"):
        try:
            answer = await console.call(access.check, parse_question(request.query_params))
        except (Failure, FormError, views.AccessFormError) as problem:
            error = str(problem)
    return console.renderer.page(
        request,
        "access_check.html",
        422 if error else 200,
        section="access",
        tab="check",
        fields={name: request.query_params.get(name, "")[:LARGEST_FIELD] for name in QUESTION},
        kinds=list(access.TYPES),
        operations=list(access.OPERATIONS),
        answer=answer,
        error=error,
    )


def parse_new_rules(form: Form) -> list[access.AclBinding]:
    """Failure and AccessFormError for fields that do not make rules."""
    selection = views.parse_selection(
        form.text("topic"), form.text("group"), form.text("transactional_id"), cluster=form.has("cluster")
    )
    return access.new_rules(
        selection,
        views.parse_access(form.text("role"), form.text("operation")),
        views.parse_principal(form.text("principal")),
        form.text("host"),
        access.Permission.DENY if form.text("permission") == "deny" else access.Permission.ALLOW,
        access.PatternType.PREFIXED if form.text("pattern") == "prefixed" else access.PatternType.LITERAL,
    )


async def add(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    try:
        rules = parse_new_rules(form)
        sentences = "; ".join(map(access.describe, rules))
        await make_change(request, f"add rules: {sentences}", access.add_rules, rules)
    except (Failure, views.AccessFormError) as problem:
        return await _page(request, form, str(problem))
    return console.renderer.redirect("/access/rules", f"Added {plural(len(rules), 'rule')} for {rules[0].principal}.")


async def remove(request: Request) -> Response:
    """First the rules are shown, then exactly those are removed."""
    console = console_of(request)
    form = await checked_form(request)
    try:
        rules = views.parse_rules(form.all("rule"), MOST_RULES)
        if not form.has("confirmed"):
            return console.renderer.page(
                request, "access_remove.html", section="access", tab="rules", rows=list(map(views.rule_row, rules))
            )
        sentences = "; ".join(map(access.describe, rules))
        count = await make_change(request, f"remove rules: {sentences}", access.remove_rules, rules)
    except (Failure, views.AccessFormError) as problem:
        return await _page(request, form, str(problem))
    return console.renderer.redirect("/access/rules", f"Removed {plural(count, 'rule')}.")


ROUTES = [
    Route("/access/rules", show),
    Route("/access/rules", add, methods=["POST"]),
    Route("/access/rules/remove", remove, methods=["POST"]),
    Route("/access/check", show_check),
]
