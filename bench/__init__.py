"""`make bench`: Odradek beside Apache Kafka on this machine, one load generator, interleaved runs, medians and ratios.

`python -m bench --help` says how to choose workloads; the full run writes docs/benchmarks.md.
"""
