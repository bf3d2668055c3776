"""One letter for each type in the stored table of Spark's functions (`spark_functions.json`)."""

from __future__ import annotations

# Types for which every function of one argument was tried.
ARGUMENTS = {
    "b": "BOOLEAN", "i": "INT", "l": "BIGINT", "d": "DOUBLE", "n": "DECIMAL(10,2)", "s": "STRING", "y": "BINARY",
    "D": "DATE", "t": "TIMESTAMP", "a": "ARRAY<INT>", "A": "ARRAY<STRING>", "R": "ARRAY<STRUCT<k: STRING, v: INT>>",
    "Q": "ARRAY<ARRAY<INT>>", "m": "MAP<STRING, INT>", "r": "STRUCT<x: INT>",
}  # fmt: skip
# Types of which every pair was tried, for operators and for the usual functions of two arguments.
PAIRED = "bildnsDtAmr"
# Types of results only.
RESULTS = {
    **ARGUMENTS,
    "z": "TINYINT", "h": "SMALLINT", "f": "FLOAT", "N": "TIMESTAMP_NTZ", "v": "VARIANT", "B": "ARRAY<BOOLEAN>",
    "L": "ARRAY<BIGINT>", "F": "ARRAY<DOUBLE>", "T": "ARRAY<TIMESTAMP>", "E": "ARRAY<DATE>", "Y": "ARRAY<BINARY>",
}  # fmt: skip
REFUSED = "-"  # because of the types of the arguments
UNDECIDED = "?"  # refused for another reason, such as an argument that must be a constant
OTHER = "*"  # accepted; the result has none of the types above
NUMBERS = "ildn"
ARRAYS = "aARQ"
