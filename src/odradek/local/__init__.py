"""Processes on this machine: brokers, clusters, ZooKeeper, their supervisor, and the network between them in tests."""
