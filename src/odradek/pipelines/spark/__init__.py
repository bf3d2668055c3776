"""Runs pipelines on Spark; the only package that imports PySpark. Compiles definitions to DataFrames and runs them."""
