"""Writes the batches of sinks and views: into topics, by transactions where asked for, and into tables."""
