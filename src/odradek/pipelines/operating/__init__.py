"""Runs pipelines as processes: start, supervise, stop, restart; status, logs, metrics and checkpoints."""
