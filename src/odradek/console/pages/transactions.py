"""Transactions: the list, one of them, and the form that aborts it in a partition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from odradek.console.cluster import transactions
from odradek.console.context import console_of
from odradek.console.pages.forms import NO_FORM, Form, Routes, make_change, page_number, search_text
from odradek.console.views.figures import FormError, has_words, page_of
from odradek.console.web.rendering import redirect, render
from odradek.conventions.figures import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

ROUTES = Routes()
TONES = {"Ongoing": "good", "PrepareCommit": "warn", "PrepareAbort": "warn", "PrepareEpochFence": "warn"}


@ROUTES.page("/transactions")
async def show_list(request: Request) -> Response:
    console = console_of(request)
    search = search_text(request)
    number = page_number(request)
    found, failures = await console.call(transactions.list_transactions)
    matching = [each for each in found if has_words(each.transactional_id, search)]
    matching.sort(key=lambda each: (each.state not in TONES, each.transactional_id))
    return render(
        request,
        "transactions.html",
        table="transactions",
        section="transactions",
        page=page_of(matching, number),
        search=search,
        has_any=bool(found),
        failures=failures,
        tones=TONES,
    )


@ROUTES.page("/transaction")
async def show(request: Request, _form: Form = NO_FORM, error: str = "") -> Response:
    console = console_of(request)
    name = request.query_params.get("id", "")
    if not name:
        raise FormError("name a transactional id")
    now_ms = int(time.time() * 1000)
    described = await console.call(transactions.describe_transaction, name, now_ms)
    return render(
        request,
        "transaction.html",
        section="transactions",
        described=described,
        tones=TONES,
        now_ms=now_ms,
        error=error,
    )


@ROUTES.form("/transaction/abort", show)
async def abort(request: Request, form: Form) -> Response:
    name, topic = request.query_params.get("id", ""), form.text("topic")
    if form.text("confirmation") != name.strip():
        raise FormError(f"nothing was aborted: type the transactional id, {name}, to confirm")
    partition = form.number("partition", 0, INT32_MAX)
    start_offset = form.number("start_offset", 0, INT64_MAX)
    change = f"abort the transaction of {name} in {topic}-{partition} from offset {start_offset}"
    await make_change(request, change, transactions.abort_in_partition, topic, partition, start_offset)
    notice = f"Wrote an abort marker to {topic}-{partition}."
    return redirect(request, f"/transaction?{urlencode({'id': name})}", notice)
