"""Requests that the audit log reports run without their clients, within a bound."""

import asyncio

from odradek.handlers.audited_requests import MOST_RUNNING, AuditedRequests


def test_requests_without_clients_are_bounded_and_a_stop_ends_them() -> None:
    outcomes = []

    async def request() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            outcomes.append("unknown")
            raise

    async def scenario() -> None:
        requests = AuditedRequests()
        waiting = [asyncio.ensure_future(requests.begin(request())) for _ in range(MOST_RUNNING + 1)]
        await asyncio.sleep(0)
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        assert len(outcomes) == 1  # the last one had no place
        await requests.close()
        assert len(outcomes) == MOST_RUNNING + 1

    asyncio.run(scenario())
