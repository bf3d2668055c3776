"""franz-go's tests of its client, `kgo`, that talk to a broker. `kadm` and `kmsg` have none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.client_suites.brokers import running
from tests.client_suites.go_suite import GoPackage
from tests.client_suites.suite import Suite

if TYPE_CHECKING:
    from tests.client_suites.suite import Outcome, Run

PACKAGE = GoPackage("github.com/twmb/franz-go", "github.com/twmb/franz-go/pkg/kgo", needs_broker=r"newTestClient\(")
# Of each test that moves records through groups and transactions; franz-go's own default is 500000.
RECORDS = os.environ.get("FRANZ_GO_RECORDS", "50000")


def execute(run: Run) -> dict[str, Outcome]:
    with running(run.brokers) as bootstrap_servers:
        environment = {
            "KGO_SEEDS": bootstrap_servers,
            "KGO_TEST_RF": str(run.brokers),
            "KGO_TEST_RECORDS": RECORDS,
            "KGO_LOG_LEVEL": "none",
        }
        return PACKAGE.test(run, environment, {})


SUITE = Suite("franz-go", (1, 3), execute, PACKAGE.names, 30)
