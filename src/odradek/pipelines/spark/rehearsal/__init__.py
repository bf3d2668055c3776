"""Runs a pipeline as production does, over given micro-batches and without a broker."""
