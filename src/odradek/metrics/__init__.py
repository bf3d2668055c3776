"""What a broker measures: counters, histograms with fixed buckets, bounded label sets, the catalog of all metrics, and
the Prometheus text format. Pure: no clock, no I/O; owners of state are read when samples are collected."""
