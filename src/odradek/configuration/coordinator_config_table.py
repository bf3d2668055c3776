"""The broker's properties for groups, committed offsets and transactions: Kafka 4.3's names, defaults and limits."""

from odradek.configuration.config_table import read_table

COORDINATOR_CONFIGS = read_table(
    """
group.consumer.assignment.interval.ms INT 1000 [0,] cluster
    The least time between two assignments of a consumer group.
group.consumer.assignors LIST uniform,range - -
    The server-side assignors that consumer groups can choose from; the first is the default.
group.consumer.heartbeat.interval.ms INT 5000 [1,] -
    How often members of a consumer group report.
group.consumer.max.assignment.interval.ms INT 15000 [0,] -
    The longest assignment interval a consumer group may set.
group.consumer.max.heartbeat.interval.ms INT 15000 [1,] -
    The longest heartbeat interval a consumer group may set.
group.consumer.max.session.timeout.ms INT 60000 [1,] -
    The longest session timeout a consumer group may set.
group.consumer.max.size INT 2147483647 [1,] -
    The most members of a consumer group.
group.consumer.migration.policy STRING bidirectional ~{disabled,downgrade,upgrade,bidirectional} -
    Whether groups may change between the classic and the consumer protocol.
group.consumer.min.assignment.interval.ms INT 0 [0,] -
    The shortest assignment interval a consumer group may set.
group.consumer.min.heartbeat.interval.ms INT 5000 [1,] -
    The shortest heartbeat interval a consumer group may set.
group.consumer.min.session.timeout.ms INT 45000 [1,] -
    The shortest session timeout a consumer group may set.
group.consumer.regex.refresh.interval.ms INT 600000 [10000,] internal
    How often pattern subscriptions are matched against new topics.
group.consumer.session.timeout.ms INT 45000 [1,] -
    After how long without a heartbeat a member of a consumer group is removed.
group.coordinator.rebalance.protocols LIST classic,consumer,streams {consumer,classic,share,streams} -
    The group protocols this broker offers.
group.initial.rebalance.delay.ms INT 3000 - -
    How long a new classic group waits for more members before its first rebalance.
group.max.session.timeout.ms INT 1800000 - -
    The longest session timeout a member of a classic group may ask for.
group.max.size INT 2147483647 [1,] -
    The most members of a classic group.
group.min.session.timeout.ms INT 6000 - -
    The shortest session timeout a member of a classic group may ask for.
group.share.assignment.interval.ms INT 1000 [0,] cluster
    The least time between two assignments of a share group.
group.share.assignors LIST simple - -
    The server-side assignors of share groups.
group.share.delivery.count.limit INT 5 [2,10] -
    How often a record is delivered to a share group at most.
group.share.heartbeat.interval.ms INT 5000 [1,] -
    How often members of a share group report.
group.share.max.assignment.interval.ms INT 15000 [0,] -
    The longest assignment interval a share group may set.
group.share.max.delivery.count.limit INT 10 [5,25] -
    The highest delivery limit a share group may set.
group.share.max.heartbeat.interval.ms INT 15000 [1,] -
    The longest heartbeat interval a share group may set.
group.share.max.partition.max.record.locks INT 4000 [2000,10000] -
    The most record locks per partition a share group may set.
group.share.max.record.lock.duration.ms INT 60000 [30000,3600000] -
    The longest record lock a share group may set.
group.share.max.session.timeout.ms INT 60000 [1,] -
    The longest session timeout a share group may set.
group.share.max.share.sessions INT 2000 [1,] -
    The most share sessions of this broker.
group.share.max.size INT 200 [1,1000] -
    The most members of a share group.
group.share.min.assignment.interval.ms INT 0 [0,] -
    The shortest assignment interval a share group may set.
group.share.min.delivery.count.limit INT 2 [2,5] -
    The lowest delivery limit a share group may set.
group.share.min.heartbeat.interval.ms INT 5000 [1,] -
    The shortest heartbeat interval a share group may set.
group.share.min.partition.max.record.locks INT 100 [100,2000] -
    The fewest record locks per partition a share group may set.
group.share.min.record.lock.duration.ms INT 15000 [1000,30000] -
    The shortest record lock a share group may set.
group.share.min.session.timeout.ms INT 45000 [1,] -
    The shortest session timeout a share group may set.
group.share.partition.max.record.locks INT 2000 [100,10000] -
    How many records of a partition a share group may have in flight.
group.share.record.lock.duration.ms INT 30000 [1000,3600000] -
    How long a delivered record is locked for its share consumer.
group.share.session.timeout.ms INT 45000 [1,] -
    After how long without a heartbeat a member of a share group is removed.
group.streams.assignment.interval.ms INT 1000 [0,] cluster
    The least time between two assignments of a streams group.
group.streams.heartbeat.interval.ms INT 5000 [1,] -
    How often members of a streams group report.
group.streams.initial.rebalance.delay.ms INT 3000 [0,] -
    How long a new streams group waits for more members before its first assignment.
group.streams.max.assignment.interval.ms INT 15000 [0,] -
    The longest assignment interval a streams group may set.
group.streams.max.heartbeat.interval.ms INT 15000 [1,] -
    The longest heartbeat interval a streams group may set.
group.streams.max.session.timeout.ms INT 60000 [1,] -
    The longest session timeout a streams group may set.
group.streams.max.size INT 2147483647 [1,] -
    The most members of a streams group.
group.streams.max.standby.replicas INT 2 [0,] -
    The most standby replicas of its tasks a streams group may set.
group.streams.min.assignment.interval.ms INT 0 [0,] -
    The shortest assignment interval a streams group may set.
group.streams.min.heartbeat.interval.ms INT 5000 [1,] -
    The shortest heartbeat interval a streams group may set.
group.streams.min.session.timeout.ms INT 45000 [1,] -
    The shortest session timeout a streams group may set.
group.streams.num.standby.replicas INT 0 [0,] -
    How many standby replicas each task of a streams group has.
group.streams.session.timeout.ms INT 45000 [1,] -
    After how long without a heartbeat a member of a streams group is removed.
offset.metadata.max.bytes INT 4096 - -
    The largest note that can be committed with an offset.
offsets.commit.timeout.ms INT 5000 [1,] -
    How long a commit of offsets waits for the replicas.
offsets.load.buffer.size INT 5242880 [1,] -
    How much is read at a time when committed offsets are loaded.
offsets.retention.check.interval.ms LONG 600000 [1,] -
    How often expired offsets are looked for.
offsets.retention.minutes INT 10080 [1,] -
    How long the offsets of an empty group are kept.
offsets.topic.compression.codec INT 0 - -
    The codec of the offsets topic, as its number in the batch format.
offsets.topic.num.partitions INT 50 [1,] -
    How many partitions the offsets topic is created with.
offsets.topic.replication.factor SHORT 3 [1,] -
    How many replicas the offsets topic is created with.
offsets.topic.segment.bytes INT 104857600 [1,] -
    The segment size of the offsets topic.
transaction.abort.timed.out.transaction.cleanup.interval.ms INT 10000 [1,] -
    How often transactions that ran out of time are looked for.
transaction.max.timeout.ms INT 900000 [1,] -
    The longest timeout a transaction may ask for.
transaction.partition.verification.enable BOOLEAN true - cluster
    Whether a transactional write is checked against the coordinator's list of partitions.
transaction.remove.expired.transaction.cleanup.interval.ms INT 3600000 [1,] -
    How often expired transactional ids are looked for.
transaction.state.log.load.buffer.size INT 5242880 [1,] -
    How much is read at a time when transactions are loaded.
transaction.state.log.min.isr INT 2 [1,] -
    The in-sync replicas the transaction topic needs for a write.
transaction.state.log.num.partitions INT 50 [1,] -
    How many partitions the transaction topic is created with.
transaction.state.log.replication.factor SHORT 3 [1,] -
    How many replicas the transaction topic is created with.
transaction.state.log.segment.bytes INT 104857600 [1,] -
    The segment size of the transaction topic.
transaction.two.phase.commit.enable BOOLEAN false - -
    Whether a producer may take part in a two-phase commit.
transactional.id.expiration.ms INT 604800000 [1,] -
    After how long without use a transactional id is forgotten.
"""
)
