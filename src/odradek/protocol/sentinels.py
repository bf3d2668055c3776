"""The sentinel values for "none" and "unknown" in Kafka's protocol and files."""

from uuid import UUID

NO_OFFSET = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
NO_LEADER = -1
NO_CONTROLLER = -1
NO_BROKER_EPOCH = -1
NO_SEQUENCE = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TOPIC_ID = UUID(int=0)
