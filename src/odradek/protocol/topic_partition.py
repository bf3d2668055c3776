"""The name of a partition: its topic's name and its index within the topic.

A plain tuple, because coordinators keep millions of them and build one for each committed offset.
"""

from typing import TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
