"""Checks of a cluster by the Kafka protocol: brokers, partitions, topics, disks, groups, transactions, clocks."""
