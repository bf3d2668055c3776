"""One partition on disk, in Apache Kafka's own file formats: segments, indexes, snapshots and checkpoints.
No asyncio here: the owner of a log calls blocking methods on a worker."""
