"""One partition on disk, in Apache Kafka's own file formats: segments, indexes, snapshots and checkpoints.
No asyncio here: what blocks is called on a worker by the owner of the log."""
