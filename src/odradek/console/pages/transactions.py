"""Transactions: the list, one of them, and the form that aborts it in a partition."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from odradek.admin import transactions
from odradek.console.pages.requests import PageRequest, Routes
from odradek.console.views.figures import has_words
from odradek.conventions.figures import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from starlette.responses import Response

    from odradek.admin.cluster import Cluster

ROUTES = Routes("transactions")
TONES = {"Ongoing": "good", "PrepareCommit": "warn", "PrepareAbort": "warn", "PrepareEpochFence": "warn"}


@ROUTES.page("/transactions")
async def show_list(request: PageRequest) -> Response:
    missing: dict[int, str] = {}
    found = await request.console.call(
        lambda cluster: transactions.list_transactions(cluster.requests, missing=missing)
    )
    matching = [each for each in found if has_words(each.transactional_id, request.search)]
    matching.sort(key=lambda each: (each.state not in TONES, each.transactional_id))
    page = request.page_of(matching)
    return request.render("transactions.html", page=page, has_any=bool(found), failures=missing.values(), tones=TONES)


class DescribedTransaction(NamedTuple):
    """The state that the coordinator has, and the parts that are open in partitions."""

    facts: Mapping[str, Any]
    open: Sequence[transactions.OpenTransaction]


def describe_transaction(cluster: Cluster, name: str, now_ms: int) -> DescribedTransaction:
    coordinator, state = transactions.describe_transaction(cluster.requests, name)
    facts = transactions.transaction_object(coordinator, state, now_ms)
    keys = {(each["topic"], each["partition"]) for each in facts["partitions"]}
    leaders = transactions.partition_leaders(cluster, {topic for topic, _ in keys}) if keys else {}
    led = {key: leaders[key] for key in keys if key in leaders}
    found = transactions.read_open_transactions(cluster.requests, led)
    return DescribedTransaction(facts, [each for each in found if each.producer_id == state.producer_id])


@ROUTES.page("/transaction")
async def show(request: PageRequest) -> Response:
    name = request.required("id", "transactional id")
    now_ms = int(time.time() * 1000)
    described = await request.console.call(describe_transaction, name, now_ms)
    return request.render("transaction.html", described=described, tones=TONES, now_ms=now_ms)


def abort_in_partition(cluster: Cluster, topic: str, partition: int, start_offset: int) -> None:
    """Write an abort marker; Failure if no transaction begins there."""
    chosen = transactions.find_open_transaction(cluster, topic, partition, start_offset)
    transactions.abort_transaction(cluster.requests, chosen)


@ROUTES.form("/transaction/abort", show)
async def abort(request: PageRequest) -> Response:
    name, topic = request.required("id", "transactional id"), request.posted.text("topic")
    request.posted.confirm(name, "transactional id", "aborted")
    partition = request.posted.number("partition", 0, INT32_MAX)
    start_offset = request.posted.number("start_offset", 0, INT64_MAX)
    change = f"abort the transaction of {name} in {topic}-{partition} from offset {start_offset}"
    await request.change(change, abort_in_partition, topic, partition, start_offset)
    notice = f"Wrote an abort marker to {topic}-{partition}."
    return request.redirect(f"/transaction?{urlencode({'id': name})}", notice)
