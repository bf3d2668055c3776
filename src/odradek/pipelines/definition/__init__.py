"""Pipeline definitions: their model, parsing and validation. Pure Python; does not import Spark."""
