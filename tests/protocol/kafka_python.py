"""kafka-python as an oracle: its schemas and codecs, imported without its deprecation warnings."""

import warnings
from functools import cache
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.data_container import DataContainer
    from kafka.protocol.schemas import StructField, load_json
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

__all__ = ["DefaultRecordBatch", "DefaultRecordBatchBuilder", "codec_of", "schema_of"]


@cache
def schema_of(name: str) -> Any:
    """The schema as it stands in the wheel, before that client patches some of it for its own use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return load_json(name)


@cache
def codec_of(name: str) -> Any:
    codec = StructField(schema_of(name))
    codec.set_data_class(type(name, (DataContainer,), {"_struct": codec}))
    return codec
