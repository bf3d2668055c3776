"""Computes tables: a flow's rows as columns of one frame, or as frames of each batch."""
