"""Transactions: the list, one of them, and the form that aborts it in a partition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from odradek.console.cluster import transactions
from odradek.console.pages.requests import PageRequest, Routes
from odradek.console.views.figures import has_words
from odradek.conventions.figures import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from starlette.responses import Response

ROUTES = Routes("transactions")
TONES = {"Ongoing": "good", "PrepareCommit": "warn", "PrepareAbort": "warn", "PrepareEpochFence": "warn"}


@ROUTES.page("/transactions")
async def show_list(request: PageRequest) -> Response:
    found, failures = await request.console.call(transactions.list_transactions)
    matching = [each for each in found if has_words(each.transactional_id, request.search)]
    matching.sort(key=lambda each: (each.state not in TONES, each.transactional_id))
    page = request.page_of(matching)
    return request.render("transactions.html", page=page, has_any=bool(found), failures=failures, tones=TONES)


@ROUTES.page("/transaction")
async def show(request: PageRequest) -> Response:
    name = request.required("id", "transactional id")
    now_ms = int(time.time() * 1000)
    described = await request.console.call(transactions.describe_transaction, name, now_ms)
    return request.render("transaction.html", described=described, tones=TONES, now_ms=now_ms)


@ROUTES.form("/transaction/abort", show)
async def abort(request: PageRequest) -> Response:
    name, topic = request.required("id", "transactional id"), request.posted.text("topic")
    request.posted.confirm(name, "transactional id", "aborted")
    partition = request.posted.number("partition", 0, INT32_MAX)
    start_offset = request.posted.number("start_offset", 0, INT64_MAX)
    change = f"abort the transaction of {name} in {topic}-{partition} from offset {start_offset}"
    await request.change(change, transactions.abort_in_partition, topic, partition, start_offset)
    notice = f"Wrote an abort marker to {topic}-{partition}."
    return request.redirect(f"/transaction?{urlencode({'id': name})}", notice)
