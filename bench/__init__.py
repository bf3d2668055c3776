"""`make bench`: Odradek beside Apache Kafka on this machine, with one load generator, in turns.

The full run writes docs/benchmarks.md. With `--against`, two versions of Odradek are compared instead.
"""
