"""Reads sources: topics, tables and files, and decodes records."""
