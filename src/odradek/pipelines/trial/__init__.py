"""Tests of pipelines: given rows, expected rows, no broker."""
