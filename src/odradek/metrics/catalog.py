"""All metrics of a broker: two lines each, `name kind labels` and what it measures. docs/metrics.md has the same table.

Names follow Prometheus' conventions: base units, `_total` for counters. `-` stands for no labels.
"""

from __future__ import annotations

from odradek.metrics.samples import Definition, Kind

_TABLE = """
odradek_build_info gauge version,python,node_id,cluster_id
    Always 1; the labels have the version of Odradek and of Python, the broker's id and the cluster's id.
odradek_uptime_seconds gauge -
    Time since the broker was ready.
odradek_ready gauge -
    1 if /ready answers 200: registered, logs open, coordinators loaded, not isolated.
odradek_requests_total counter api
    Requests that were answered, or that closed the connection.
odradek_request_errors_total counter api,error
    Error codes in responses, once for each response and code; CONNECTION_CLOSED for a request without an answer.
odradek_request_seconds histogram api
    Time from the arrival of a request to its response, the wait that the client asked for included, throttling not.
odradek_request_stage_seconds_total counter api,stage
    Time of requests by stage: queue, handler, log, replication, controller, wait, throttle.
odradek_throttled_requests_total counter api
    Requests whose client was throttled for a quota.
odradek_slow_requests_total counter api
    Requests that took longer than slow.request.ms, without waits by design.
odradek_topic_bytes_in_total counter topic
    Bytes of record batches that clients produced and that were appended, as they were sent.
odradek_topic_records_in_total counter topic
    Records that clients produced and that were appended.
odradek_topic_bytes_out_total counter topic
    Bytes of record batches that were sent to consumers.
odradek_topic_records_out_total counter topic
    Records that were sent to consumers: their bytes divided by the mean size of a record in the partition.
odradek_topic_size_bytes gauge topic
    Size of the topic's logs on this broker.
odradek_replication_bytes_in_total counter -
    Bytes of record batches that this broker fetched as a follower.
odradek_replication_bytes_out_total counter -
    Bytes of record batches that were sent to followers.
odradek_replication_lag_records gauge -
    The largest number of records that a follower lacks of a partition that this broker leads.
odradek_replication_lag_seconds gauge -
    The longest time for which a follower has not been caught up with a partition that this broker leads.
odradek_partitions gauge -
    Partitions with a replica on this broker.
odradek_leader_partitions gauge -
    Partitions that this broker leads.
odradek_under_replicated_partitions gauge -
    Partitions that this broker leads and that have a replica which is not in sync.
odradek_under_min_isr_partitions gauge -
    Partitions that this broker leads with fewer in-sync replicas than min.insync.replicas.
odradek_failed_partitions gauge -
    Partitions of this broker whose log cannot be used.
odradek_offline_partitions gauge -
    Partitions of the cluster without a leader; 0 on brokers that are not the controller.
odradek_active_brokers gauge -
    Brokers that are neither fenced nor shutting down, as this broker knows them.
odradek_controller_active gauge -
    1 on the broker that is the controller.
odradek_leader_elections_total counter -
    How often this broker began to lead a partition.
odradek_isr_shrinks_total counter -
    How often a replica left the in-sync set of a partition that this broker leads.
odradek_isr_expands_total counter -
    How often a replica joined the in-sync set of a partition that this broker leads.
odradek_log_size_bytes gauge directory
    Size of the logs in a log directory.
odradek_log_directory_failed gauge directory
    1 for a log directory that failed.
odradek_log_flush_seconds histogram -
    Time of an fsync of a log, the wait for a worker included.
odradek_groups gauge kind,state
    Groups that this broker coordinates.
odradek_transactions gauge state
    Transactional ids that this broker coordinates, by the state of their transaction.
odradek_coordinator_shards gauge coordinator,state
    Partitions of the internal topics that this broker leads, by the state of their coordinator.
odradek_fetch_sessions gauge -
    Incremental fetch sessions that are remembered.
odradek_client_instances gauge -
    Clients that have asked this broker which metrics to push (client telemetry).
odradek_client_metric_clients gauge metric
    Clients whose latest push has this metric; at most 500 metrics.
odradek_client_metric_all_clients gauge metric
    The metric's sum over all clients: latest values of gauges, totals of sums and histograms since their first push.
odradek_client_metric_max gauge metric
    The largest of the clients' values.
odradek_connections gauge listener
    Open connections.
odradek_throttled_connections gauge listener
    Open connections that are muted because their client is throttled or connects too fast.
odradek_request_memory_bytes gauge -
    Memory of incomplete requests, and of those that wait for a worker, which queued.max.request.bytes limits.
odradek_connections_waiting_for_memory gauge -
    Connections whose requests wait for memory: queued.max.request.bytes is too low, or clients send slowly.
odradek_connections_accepted_total counter listener
    Connections that were accepted.
odradek_connections_closed_total counter listener,reason
    Connections that were closed, by reason: client, idle, limit, rate, refused, failed, stopping, isolated.
odradek_authentication_failures_total counter listener
    Failed SASL authentications.
odradek_zookeeper_connected gauge -
    1 while the session with ZooKeeper is connected; absent on a broker without ZooKeeper.
odradek_isolated gauge -
    1 while this broker is cut off from its cluster and serves no clients.
odradek_event_loop_lag_seconds histogram -
    How much later than planned a timer ran: the time for which the event loop was busy.
process_resident_memory_bytes gauge -
    Memory of the process that is resident.
process_cpu_seconds_total counter -
    User and system time of the process.
process_open_fds gauge -
    Open file descriptors.
process_max_fds gauge -
    The limit of open file descriptors.
process_start_time_seconds gauge -
    When the process started, in seconds since 1970.
"""


def read_catalog(text: str) -> dict[str, Definition]:
    lines = [line for line in text.splitlines() if line.strip()]
    found: dict[str, Definition] = {}
    for head, help_text in zip(lines[::2], lines[1::2], strict=True):
        name, kind, labels = head.split()
        names = () if labels == "-" else tuple(labels.split(","))
        found[name] = Definition(name, Kind(kind), names, help_text.strip())
    return found


CATALOG = read_catalog(_TABLE)
