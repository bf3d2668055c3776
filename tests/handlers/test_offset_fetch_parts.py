"""The parts of an OffsetFetch request have few elements each, and their answers joined are those of the whole."""

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.handlers.cooperative_scheduling import ELEMENTS_PER_TURN
from odradek.handlers.offset_fetch_parts import count_elements, cut_group, join_group
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.example_counts import examples

counts = st.lists(st.sampled_from([0, 1, 2, 100, 497, 498, 499, 500, 996, 997, 1500]), max_size=12)


def group_of(partition_counts: list[int]) -> OffsetFetchRequestGroup:
    topics = [
        OffsetFetchRequestTopics(name=f"t{number}", partition_indexes=list(range(count)))
        for number, count in enumerate(partition_counts)
    ]
    return OffsetFetchRequestGroup(group_id="g", member_id="m", member_epoch=3, topics=topics)


def answer(group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartitions(partition_index=each, committed_offset=each)
                for each in topic.partition_indexes
            ],
        )
        for topic in group.topics or ()
    ]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


@settings(max_examples=examples(30), deadline=None)
@given(counts)
def test_parts_are_small_and_their_answers_are_those_of_the_whole(partition_counts: list[int]) -> None:
    group = group_of(partition_counts)
    expected = answer(group)
    parts = cut_group(group)
    assert all(count_elements(part) <= ELEMENTS_PER_TURN for part in parts)
    assert {(part.group_id, part.member_id, part.member_epoch) for part in parts} == {("g", "m", 3)}
    assert join_group(group, [answer(part) for part in parts]) == expected


def test_an_error_of_a_part_is_that_of_the_group() -> None:
    group = group_of([2 * ELEMENTS_PER_TURN])
    answers = [answer(part) for part in cut_group(group)]
    refused = OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)
    assert join_group(group, [*answers[:-1], refused]) == refused


def test_a_group_whose_topics_are_not_named_is_one_part() -> None:
    group = OffsetFetchRequestGroup(group_id="g", topics=None)
    assert cut_group(group) == [group]
