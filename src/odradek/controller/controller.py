"""The controller of the cluster: decides about requests on its own image, and commits the changes to the store.

It holds no logs and has no subscribers: every broker, its own included, learns of changes from the store
(`metadata/cache`). Decisions are pure; `metadata_writer` runs them one at a time. The answer to a request is its result
and the version from which on an image shows the decision.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.configuration.config_types import ConfigResourceType
from odradek.controller import requests
from odradek.controller.cluster_controller import ClusterController
from odradek.controller.decisions import reassignment_requests, request_results
from odradek.controller.decisions.features import decide_one_min_in_sync
from odradek.controller.decisions.partition_rules import MIN_IN_SYNC
from odradek.controller.decisions.topics import decide_new_leader_epochs
from odradek.controller.metadata_writer import (
    ChangeNotMade,
    ChangeNotReadable,
    ControllerFenced,
    Decided,
    MetadataWriter,
)
from odradek.host.logs import get_logger
from odradek.metadata.changes import ControllerElected
from odradek.metadata.store import CommitTooLarge, StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.decisions.topics import Cluster
    from odradek.controller.requests import AllocateProducerIds, Ask, ChangeRequest, ListReassignments
    from odradek.host.entropy import Entropy
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import PartitionImage
    from odradek.metadata.image import MetadataImage
    from odradek.metadata.store import MetadataStore

log = get_logger(__name__)

R = TypeVar("R")

SHORTEST_TIMEOUT_MS = 1_000.0
LONGEST_TIMEOUT_MS = 60_000.0
MOST_WAITING_REQUESTS = 1_000


class Controller:
    def __init__(self, store: MetadataStore, config: BrokerConfig, entropy: Entropy) -> None:
        self._node_id = config.node_id
        self._writer = MetadataWriter(store, config, entropy)
        self.cluster = ClusterController(self._writer)
        """Broker states, and what the controller does without a request."""

    @functools.cached_property
    def _other_requests(self) -> Mapping[type[Ask[Any]], Callable[[Any], Awaitable[Decided[Any]]]]:
        return {
            requests.AllocateProducerIds: self._allocate_producer_ids,
            requests.ListReassignments: self._list_reassignments,
            requests.UnfenceBroker: self.cluster.unfence_broker,
            requests.ShutDownBroker: self.cluster.shut_down_broker,
            requests.ReportOfflineReplicas: self.cluster.report_offline_replicas,
        }

    @property
    def image(self) -> MetadataImage:
        return self._writer.image

    @property
    def is_active(self) -> bool:
        """Whether this controller may decide: it has claimed its epoch, and no commit of it was fenced."""
        return self._writer.is_active

    async def start(self) -> None:
        """Become the controller of a single broker, and raise the leader epoch of each partition that it leads."""
        await self._writer.claim()
        elected = ControllerElected(self._node_id, self._writer.controller_epoch)

        def decide(cluster: Cluster) -> tuple[None, list[Change]]:
            return None, [
                elected,
                *decide_new_leader_epochs(cluster.image, self._node_id),
                *decide_one_min_in_sync(cluster.image, cluster.config),
            ]

        await self._writer.write(decide)

    async def start_elected(self, controller_epoch: int) -> None:
        """Become the controller of a cluster, with the epoch of the election that this broker has won."""
        self._writer.known_levels = None
        await self._writer.begin(controller_epoch)
        elected = ControllerElected(self._node_id, controller_epoch)
        before = self._default_min_in_sync
        await self._writer.write(
            lambda cluster: (None, [elected, *decide_one_min_in_sync(cluster.image, cluster.config)])
        )
        if self._default_min_in_sync != before:
            log.info(f"the default of {MIN_IN_SYNC} is a setting of the cluster", value=self._default_min_in_sync)

    @property
    def _default_min_in_sync(self) -> str | None:
        return self.image.configs_of(ConfigResourceType.BROKER, "").get(MIN_IN_SYNC)

    async def stop_writing(self) -> None:
        """Finish the writes in progress, and accept no others."""
        await self._writer.stop_writing()

    async def ask(self, request: Ask[R]) -> Decided[R]:
        """`StoreError` when the change cannot be written."""
        if isinstance(request, requests.ChangeRequest):
            return await self._change(request)
        decided: Decided[R] = await self._other_requests[type(request)](request)
        return decided

    async def _change(self, request: ChangeRequest[R]) -> Decided[R]:
        before = self.image
        decided = await write_request(self._writer, request)
        if not request.needs_repair(decided.result, before, self.image):
            return decided
        try:
            return decided._replace(version=await self.cluster.repair())
        except StoreError as problem:  # the change is made, and a later repair follows
            log.warning("partitions that depend on a change wait for a later repair", reason=problem)
            return decided

    async def _allocate_producer_ids(self, request: AllocateProducerIds) -> Decided[int]:
        """`ControllerFenced` when another controller took over."""
        return await self._writer.write(
            lambda cluster: request_results.decide_producer_ids(request.count, cluster),
            requests.BROKER_REQUEST_TIMEOUT_MS,
        )

    async def _list_reassignments(
        self, request: ListReassignments
    ) -> Decided[dict[str, list[PartitionImage]] | Refusal]:
        return Decided(reassignment_requests.list_reassignments(self.image, request.partitions), self.image.version)


async def write_request(writer: MetadataWriter, request: ChangeRequest[R]) -> Decided[R]:
    """A commit that is too large, that a broker cannot read, or that another controller has fenced, is a refusal.
    `StoreError` when its turn does not come within the timeout, or if too many requests wait. A change that is not
    written does not count for the client's quota, and one that is decided again after a conflict counts once."""
    if request.is_limited and writer.waiting_count >= MOST_WAITING_REQUESTS:
        raise ChangeNotMade(f"{writer.waiting_count} changes of the metadata wait")
    timeout_ms = min(max(request.timeout_ms, SHORTEST_TIMEOUT_MS), LONGEST_TIMEOUT_MS)

    def decide(cluster: Cluster) -> tuple[R, list[Change]]:
        request.mutations.give_back()  # what an earlier attempt has recorded
        result, changes = request.decide(cluster)
        return result, [] if request.validate_only else changes

    try:
        return await writer.write(decide, timeout_ms, request.mutations.give_back)
    except CommitTooLarge as problem:
        refusal = Refusal(ErrorCode.POLICY_VIOLATION, str(problem))
    except ChangeNotReadable as problem:
        refusal = Refusal(problem.error, str(problem))
    except ControllerFenced as problem:
        refusal = Refusal(ErrorCode.NOT_CONTROLLER, str(problem))
    return Decided(request.refuse(refusal), writer.image.version)
