"""Runs pipelines on Spark: the only room that imports PySpark. A definition becomes DataFrames, engines run them."""
