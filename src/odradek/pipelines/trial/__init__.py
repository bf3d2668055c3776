"""Tests of pipelines with given and expected rows, without a broker."""
