"""The list of topics, searched, sorted and cut into pages; one topic with its partitions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.console.views.figures import Page, has_words, page_of, sparkline

if TYPE_CHECKING:
    from odradek.admin.cluster_state import PartitionState
    from odradek.admin.settings import Setting
    from odradek.console.cluster.snapshot import Snapshot, TopicSummary
    from odradek.console.models import Series

COLUMNS: Mapping[str, tuple[str, Callable[[TopicSummary], float | str]]] = {
    "name": ("Topic", lambda topic: topic.name),
    "partitions": ("Partitions", lambda topic: topic.partitions),
    "records": ("Records", lambda topic: topic.records),
    "size": ("Size", lambda topic: topic.size_bytes),
    "rate": ("Records/s", lambda topic: topic.records_per_s),
}


class TopicQuery(NamedTuple):
    """The search, the order and the page of the list, from its address."""

    search: str = ""
    sort: str = "name"
    is_descending: bool = False
    shows_internal: bool = False
    only_problems: bool = False
    page: int = 1

    def fields(self, **changes: object) -> dict[str, object]:
        """The fields of an address of this list, with some changed."""
        present: dict[str, object] = {
            "q": self.search,
            "sort": self.sort if self.sort != "name" else "",
            "down": "1" if self.is_descending else "",
            "internal": "1" if self.shows_internal else "",
            "only": "problems" if self.only_problems else "",
        }
        return present | changes


def parse_query(fields: Mapping[str, str]) -> TopicQuery:
    page = fields.get("page", "1")
    sort = fields.get("sort", "name")
    return TopicQuery(
        fields.get("q", "").strip()[:200],
        sort if sort in COLUMNS else "name",
        fields.get("down") == "1",
        fields.get("internal") == "1",
        fields.get("only") == "problems",
        int(page) if page.isascii() and page.isdecimal() and len(page) < 8 else 1,
    )


class TopicRow(NamedTuple):
    topic: TopicSummary
    line: str


def topic_rows(topics: Iterable[TopicSummary], snapshot: Snapshot, rates: Series) -> list[TopicRow]:
    return [TopicRow(topic, sparkline(rates.points(topic.name, snapshot.time_s))) for topic in topics]


def list_topics(snapshot: Snapshot, rates: Series, query: TopicQuery) -> Page[TopicRow]:
    """A search finds names that contain all its words."""
    found = [
        topic
        for topic in snapshot.topics.values()
        if (query.shows_internal or not topic.is_internal)
        and (not query.only_problems or topic.offline or topic.under_replicated)
        and has_words(topic.name, query.search)
    ]
    found.sort(key=COLUMNS["name"][1])
    if query.sort != "name" or query.is_descending:
        found.sort(key=COLUMNS[query.sort][1], reverse=query.is_descending)
    page = page_of(found, query.page)
    return page.with_rows(topic_rows(page.rows, snapshot, rates))


class PartitionRow(NamedTuple):
    state: PartitionState
    start_offset: int | None
    end_offset: int | None
    size_bytes: int | None  # on the leader

    @property
    def records(self) -> int | None:
        if self.start_offset is None or self.end_offset is None:
            return None
        return max(self.end_offset - self.start_offset, 0)


def list_partitions(snapshot: Snapshot, partitions: Iterable[PartitionState]) -> list[PartitionRow]:
    sizes = snapshot.disks.sizes
    return [
        PartitionRow(each, snapshot.starts.get(key), snapshot.ends.get(key), sizes.get((each.leader, *key)))
        for each in partitions
        for key in [(each.topic, each.index)]
    ]


def order_settings(settings: Iterable[Setting], search: str) -> Sequence[Setting]:
    """Those that were changed first, then by name."""
    found = [each for each in settings if has_words(each.name, search)]
    return sorted(found, key=lambda each: (not is_own(each), each.name))


def is_own(setting: Setting) -> bool:
    """Whether the topic itself has a value for the setting."""
    return setting.source == "dynamic topic"
