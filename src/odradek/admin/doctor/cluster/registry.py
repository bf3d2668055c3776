"""The one list of checks of a cluster, in the order of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.cluster import brokers, clocks, disks, groups, partitions, processes, topics, transactions
from odradek.admin.doctor.finding import Check

if TYPE_CHECKING:
    from odradek.admin.doctor.cluster.facts import ClusterFacts

CHECKS: tuple[Check[ClusterFacts], ...] = (
    Check("no-broker", "brokers answer", (), brokers.no_broker_answers),
    Check("broker-unreachable", "brokers answer at their addresses", ("state", "contacts"), brokers.unreachable),
    Check("broker-fenced", "no broker is fenced", ("state",), brokers.fenced_brokers),
    Check("controller", "a controller is elected", ("state",), brokers.no_controller),
    Check("advertised-address", "advertised addresses are usable", ("contacts",), brokers.advertised_addresses),
    Check("mixed-versions", "brokers have one version", ("contacts",), brokers.mixed_versions),
    Check("partition-offline", "all partitions have leaders", ("state",), partitions.offline),
    Check("under-min-isr", "writes with acks=all work", ("state", "topic_settings"), partitions.under_min_in_sync),
    Check("under-replicated", "all replicas are in sync", ("state",), partitions.under_replicated),
    Check("preferred-leaders", "preferred leaders lead", ("state",), partitions.preferred_leaders),
    Check("reassignment-stuck", "reassignments can end", ("state",), partitions.running_reassignments),
    Check("partitions-per-broker", "brokers have few replicas", ("state",), partitions.partitions_per_broker),
    Check("replication-factor", "topics have several replicas", ("state",), topics.replication_factor_one),
    Check("internal-topics", "internal topics have enough replicas", ("state",), topics.internal_topics),
    Check("min-isr-of-all", "topics survive a restart", ("state", "topic_settings"), topics.no_spare_replica),
    Check("unclean-election", "elections are clean", ("topic_settings",), topics.unclean_elections),
    Check("log-directory-failed", "log directories work", ("disks",), disks.failed_directories),
    Check("disk-full", "volumes have space", ("disks",), disks.full_directories),
    Check("disk-skew", "brokers hold about the same", ("disks",), disks.skewed_brokers),
    Check("retention", "volumes hold what topics keep", ("disks", "topic_settings"), disks.retention_beyond_volume),
    Check("group-lag", "groups are not far behind", ("groups",), groups.large_lag),
    Check("group-lag-growing", "groups keep up", ("groups", "later_groups"), groups.growing_lag),
    Check("group-abandoned", "groups with lag have members", ("groups",), groups.abandoned),
    Check("group-unstable", "groups are stable", ("groups", "later_groups"), groups.unstable),
    Check("transaction-hanging", "no transaction hangs", ("hanging",), transactions.hanging),
    Check("open-files", "brokers may open enough files", ("open_files",), processes.open_files),
    Check("clock-skew", "clocks agree", ("ahead_ms",), clocks.clock_skew),
)  # fmt: skip
