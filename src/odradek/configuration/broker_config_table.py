"""The broker properties that Odradek uses: addresses, limits, data directories, and topics' defaults.

Names, types, defaults and limits are Kafka 4.3's, apart from some defaults: `listeners` is this machine alone, because
nothing is authenticated, `log.dir` is a directory of our own, `queued.max.request.bytes` is a limit, so that many
connections take little memory, and `broker.heartbeat.interval.ms`, `broker.session.timeout.ms` and
`zookeeper.session.timeout.ms` are shorter, so that a broker that hangs is noticed within five seconds. Listeners cannot
change while the broker runs. The properties of ZooKeeper are Kafka 3.9's; `zookeeper.auth`,
`absent.broker.replacement.ms`, `audit.log.*`, `groups.file`, `metrics.*`, `produce.validation` and `slow.request.ms`
are our own.
"""

from odradek.configuration.config_table import read_table
from odradek.configuration.config_types import Value
from odradek.configuration.coordinator_config_table import COORDINATOR_CONFIGS
from odradek.configuration.metrics_listener import check_metrics_listener
from odradek.configuration.sasl_config_table import SASL_CONFIGS
from odradek.configuration.tls_config_table import TLS_CONFIGS
from odradek.configuration.topic_config_table import gzip_level

LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def replica_selector(value: Value) -> str | None:
    return (
        None
        if value in (LEADER_SELECTOR, RACK_AWARE_SELECTOR)
        else f"must be {LEADER_SELECTOR} or {RACK_AWARE_SELECTOR}"
    )


STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_AUTHORIZERS = (
    STANDARD_AUTHORIZER,
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)


def authorizer(value: Value) -> str | None:
    """Kafka's authorizers of all versions; all of them mean the access control lists of this broker."""
    return None if value == "" or value in _AUTHORIZERS else f"must be empty or {STANDARD_AUTHORIZER}"


def super_users(value: Value) -> str | None:
    names = [name.strip() for name in str(value or "").split(";")]
    malformed = [name for name in names if name and ":" not in name]
    return "must be principals such as User:admin, separated by semicolons" if malformed else None


SERVER_CONFIGS = read_table(
    """
advertised.listeners LIST - - -
    The addresses that clients connect to; by default those of `listeners`.
absent.broker.replacement.ms LONG -1 [-1,] cluster
    Odradek's own: after how long replicas of a broker that is away are made on other brokers; -1 never does.
allow.everyone.if.no.acl.found BOOLEAN false - -
    Whether everyone may access a resource for which there are no access control lists.
audit.log.max.bytes LONG 104857600 [4096,] -
    Odradek's own: after how many bytes the audit log continues in a new file.
audit.log.max.files INT 10 [1,] -
    Odradek's own: how many files of the audit log are kept, the current one included.
audit.log.max.lines.per.second INT 1000 [1,] -
    Odradek's own: how many lines the audit log takes; more are counted, and the count is written.
audit.log.path STRING - - -
    Odradek's own: the file that denied requests and changes of the cluster are written to; none by default.
authorizer.class.name STRING "" authorizer -
    The class of Kafka's authorizer turns on access control lists; without it every client may do everything.
auto.create.topics.enable BOOLEAN true - -
    Whether asking for a topic that does not exist creates it.
auto.leader.rebalance.enable BOOLEAN true - -
    Whether partitions are given back to their preferred leaders automatically.
broker.heartbeat.interval.ms INT 500 - -
    How often the controller and each other broker exchange heartbeats.
broker.id INT -1 - -
    The older name of node.id.
broker.rack STRING - - -
    The rack or zone this broker stands in; replicas of a partition are spread over racks.
broker.session.timeout.ms INT 2500 - -
    After how long without an answer to heartbeats a broker is fenced, by a controller that reaches most brokers.
client.telemetry.enable BOOLEAN true - -
    Odradek's own: whether clients are asked for their metrics, as client-metrics subscriptions say (KIP-714).
compression.gzip.level INT -1 gzip-level cluster
    Default of the topic setting compression.gzip.level.
compression.lz4.level INT 9 [1,17] cluster
    Default of the topic setting compression.lz4.level.
compression.type STRING producer {uncompressed,zstd,lz4,snappy,gzip,producer} cluster
    Default of the topic setting compression.type.
compression.zstd.level INT 3 [-131072,22] cluster
    Default of the topic setting compression.zstd.level.
connections.max.idle.ms LONG 600000 - -
    After how long without a request a connection is closed; a negative number never closes it.
controller.quota.window.num INT 11 [1,] -
    How many samples a burst of topic changes may take under controller_mutation_rate.
controller.quota.window.size.seconds INT 1 [1,] -
    The time of one of these samples.
default.replication.factor INT 1 - -
    How many replicas a topic gets when its creator does not say.
delete.topic.enable BOOLEAN true - -
    Whether topics can be deleted.
fetch.max.bytes INT 57671680 [1024,] -
    The most bytes one fetch is answered with, whatever the client asks for.
groups.file STRING - - -
    Odradek's own: the file with the groups and roles of users (g:plant = ann, bob), for permissions of streams.
inter.broker.listener.name STRING - - -
    The listener through which brokers reach each other.
leader.imbalance.check.interval.seconds LONG 300 [1,] -
    How often partitions are given back to their preferred leaders.
listener.security.protocol.map STRING SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT - -
    Which security protocol each listener speaks.
listeners LIST PLAINTEXT://127.0.0.1:9092 - -
    The addresses this broker listens on, as NAME://host:port; an empty host means every interface.
log.cleaner.backoff.ms LONG 15000 [0,] cluster
    How often compacted topics are looked over for one that is worth compacting.
log.cleaner.dedupe.buffer.size LONG 134217728 - cluster
    The memory for the keys of one round of compaction; what has more keys is compacted in several rounds.
log.cleaner.delete.retention.ms LONG 86400000 [0,] cluster
    Default of the topic setting delete.retention.ms.
log.cleaner.enable BOOLEAN true - -
    Whether topics are compacted at all.
log.cleaner.io.max.bytes.per.second DOUBLE 1.7976931348623157E308 - cluster
    How many bytes compaction reads and writes a second at most.
log.cleaner.max.compaction.lag.ms LONG 9223372036854775807 [1,] cluster
    Default of the topic setting max.compaction.lag.ms.
log.cleaner.min.cleanable.ratio DOUBLE 0.5 [0,1] cluster
    Default of the topic setting min.cleanable.dirty.ratio.
log.cleaner.min.compaction.lag.ms LONG 0 [0,] cluster
    Default of the topic setting min.compaction.lag.ms.
log.cleanup.policy LIST delete {compact,delete} cluster
    Default of the topic setting cleanup.policy.
log.dir LIST /tmp/odradek-logs - -
    The directory for data when log.dirs is not set.
log.dirs LIST - - -
    The directories that hold the data, separated by commas.
log.flush.interval.messages LONG 9223372036854775807 [1,] cluster
    Default of the topic setting flush.messages.
log.flush.interval.ms LONG - - cluster
    Default of the topic setting flush.ms.
log.flush.offset.checkpoint.interval.ms INT 60000 [0,] -
    How often the point up to which each log is safely on disk is written down.
log.flush.scheduler.interval.ms LONG 9223372036854775807 - -
    How often logs are looked at for records that are due to be flushed.
log.flush.start.offset.checkpoint.interval.ms INT 60000 [0,] -
    How often each log's first offset is written down.
log.index.interval.bytes INT 4096 [0,] cluster
    Default of the topic setting index.interval.bytes.
log.index.size.max.bytes INT 10485760 [4,] cluster
    Default of the topic setting segment.index.bytes.
log.local.retention.bytes LONG -2 [-2,] cluster
    Default of the topic setting local.retention.bytes.
log.local.retention.ms LONG -2 [-2,] cluster
    Default of the topic setting local.retention.ms.
log.message.timestamp.after.max.ms LONG 3600000 [0,] cluster
    Default of the topic setting message.timestamp.after.max.ms.
log.message.timestamp.before.max.ms LONG 9223372036854775807 [0,] cluster
    Default of the topic setting message.timestamp.before.max.ms.
log.message.timestamp.type STRING CreateTime {CreateTime,LogAppendTime} cluster
    Default of the topic setting message.timestamp.type.
log.preallocate BOOLEAN false - cluster
    Default of the topic setting preallocate.
log.retention.bytes LONG -1 - cluster
    Default of the topic setting retention.bytes.
log.retention.check.interval.ms LONG 300000 [1,] -
    How often logs are looked at for segments that are too old or too many.
log.retention.hours INT 168 - -
    Default of the topic setting retention.ms in hours; used when the finer ones are not set.
log.retention.minutes INT - - -
    Default of the topic setting retention.ms in minutes; used when log.retention.ms is not set.
log.retention.ms LONG - - cluster
    Default of the topic setting retention.ms.
log.roll.hours INT 168 [1,] -
    Default of the topic setting segment.ms in hours; used when log.roll.ms is not set.
log.roll.jitter.hours INT 0 [0,] -
    Default of the topic setting segment.jitter.ms in hours; used when log.roll.jitter.ms is not set.
log.roll.jitter.ms LONG - - cluster
    Default of the topic setting segment.jitter.ms.
log.roll.ms LONG - - cluster
    Default of the topic setting segment.ms.
log.segment.bytes INT 1073741824 [1048576,] cluster
    Default of the topic setting segment.bytes.
log.segment.delete.delay.ms LONG 60000 [0,] cluster
    Default of the topic setting file.delete.delay.ms.
max.connection.creation.rate INT 2147483647 [0,] cluster
    The most connections that the broker accepts in a second; a listener may have a value of its own.
max.connections INT 2147483647 [0,] cluster
    The most connections that are open at one time.
max.connections.per.ip INT 2147483647 [0,] cluster
    The most connections that are open at one time from one address.
max.connections.per.ip.overrides STRING "" - cluster
    Addresses with limits of their own in place of max.connections.per.ip: 10.0.0.1:100,10.0.0.2:200.
max.incremental.fetch.session.cache.slots INT 1000 [0,] -
    How many consumers' incremental fetch sessions are remembered.
max.request.partition.size.limit INT 2000 [1,] -
    The most partitions one DescribeTopicPartitions answer holds.
message.max.bytes INT 1048588 [0,] cluster
    Default of the topic setting max.message.bytes.
metrics.listener STRING 127.0.0.1:0 metrics-listener -
    Odradek's own: where /metrics, /healthy and /ready are served over HTTP, as host:port; empty for nowhere.
metrics.max.topics INT 200 [0,] -
    Odradek's own: how many topics have metrics of their own; all others are counted together as `other`.
min.insync.replicas INT 1 [1,] cluster
    Default of the topic setting min.insync.replicas.
node.id INT - [0,] -
    This broker's number in the cluster.
num.partitions INT 1 [1,] -
    How many partitions a topic gets when its creator does not say.
produce.validation STRING bounded {header,bounded,complete} cluster
    Odradek's own: what is checked of a batch besides its header and checksum: nothing, a bounded part, or every record.
producer.id.expiration.check.interval.ms INT 600000 [1,] internal
    How often forgotten producers are looked for.
producer.id.expiration.ms INT 86400000 [1,] cluster
    After how long without a write a producer's sequence numbers are forgotten.
queued.max.request.bytes LONG 8388608 - -
    How many bytes of incomplete and waiting requests are in memory before other large requests wait; -1 is no limit.
quota.window.num INT 11 [1,] -
    How many samples the rates of client quotas are measured over.
quota.window.size.seconds INT 1 [1,] -
    The time of one sample of the rates of client quotas.
replica.fetch.backoff.ms INT 1000 [0,] -
    The longest pause of a follower after its leader has refused a fetch.
replica.fetch.max.bytes INT 1048576 [0,] -
    How much of one partition a follower fetches at once; a larger first batch is fetched whole.
replica.fetch.min.bytes INT 1 - -
    How much must have been written before a leader answers a follower.
replica.fetch.response.max.bytes INT 10485760 [0,] -
    How much a follower fetches at once from one leader; a larger first batch is fetched whole.
replica.fetch.wait.max.ms INT 500 - -
    How long a leader may wait for records before it answers a follower.
replica.high.watermark.checkpoint.interval.ms LONG 5000 - -
    How often each partition's high watermark is written down.
replica.lag.time.max.ms LONG 30000 - -
    How long a follower may lag behind before it leaves the in-sync set.
replica.selector.class STRING - replica-selector -
    RackAwareReplicaSelector sends consumers with `client.rack` to a replica in their rack.
replica.socket.timeout.ms INT 30000 - -
    How long a follower waits for an answer of its leader.
request.timeout.ms INT 30000 - -
    How long this broker waits for an answer from another.
slow.request.ms LONG 1000 [-1,] cluster
    Odradek's own: a request that takes longer, without waits that its client asked for, is logged; -1 logs none.
socket.listen.backlog.size INT 50 [1,] -
    How many connections may wait to be accepted.
socket.receive.buffer.bytes INT 102400 - -
    The receive buffer of each connection's socket; -1 leaves it to the operating system.
socket.request.max.bytes INT 104857600 [1,] -
    The largest request that is read; a larger one closes the connection.
socket.send.buffer.bytes INT 102400 - -
    The send buffer of each connection's socket; -1 leaves it to the operating system.
super.users STRING - super-users -
    Principals that may do everything, such as User:admin, separated by semicolons.
telemetry.max.bytes INT 1048576 [1,] -
    The largest push of client metrics, as it is sent; decompressed it may have eight times as many bytes.
unclean.leader.election.enable BOOLEAN false - cluster
    Default of the topic setting unclean.leader.election.enable.
unclean.leader.election.interval.ms LONG 300000 [1,] -
    How often unclean elections are tried for partitions without a leader, where they are allowed.
zookeeper.auth PASSWORD - - -
    Odradek's own: how to authenticate to ZooKeeper, as digest:user:password or sasl:user:password (DIGEST-MD5).
zookeeper.connect STRING - - -
    The ZooKeeper of a cluster, as host:port,host:port/chroot; without it this broker is alone and keeps its metadata.
zookeeper.connection.timeout.ms INT - [1,] -
    How long a start waits for ZooKeeper; by default 18 s, or zookeeper.session.timeout.ms if it is longer.
zookeeper.session.timeout.ms INT 4000 [1,] -
    After how long without a sign of life the cluster considers this broker dead.
zookeeper.set.acl BOOLEAN false - -
    Whether only this broker's identity (zookeeper.auth) may read and change the nodes that it creates in ZooKeeper.
""",
    {
        "authorizer": authorizer,
        "gzip-level": gzip_level,
        "metrics-listener": check_metrics_listener,
        "replica-selector": replica_selector,
        "super-users": super_users,
    },
)

BROKER_CONFIGS = dict(sorted({**SERVER_CONFIGS, **COORDINATOR_CONFIGS, **SASL_CONFIGS, **TLS_CONFIGS}.items()))
