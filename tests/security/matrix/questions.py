"""One request for each API that checks access, or several where it checks in several ways."""

from collections.abc import Iterator
from uuid import UUID

from tests.security.matrix.cluster_questions import cluster_questions
from tests.security.matrix.config_questions import config_questions
from tests.security.matrix.deletion_questions import deletion_questions
from tests.security.matrix.group_questions import group_questions
from tests.security.matrix.question import Question
from tests.security.matrix.rights import Names
from tests.security.matrix.topic_questions import topic_creations, topic_questions
from tests.security.matrix.transaction_questions import transaction_questions


def questions(names: Names, topic_id: UUID, node_id: int) -> Iterator[Question]:
    """In this order: those that delete come last."""
    yield from cluster_questions(names, node_id)
    yield from topic_questions(names, topic_id)
    yield from config_questions(names, node_id)
    yield from group_questions(names, topic_id)
    yield from transaction_questions(names)
    yield from topic_creations(names)
    yield from deletion_questions(names, topic_id)
