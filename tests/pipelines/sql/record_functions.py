"""Records the functions of the installed PySpark with their kinds: `python -m tests.pipelines.sql.record_functions`."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

RECORDED = Path(__file__).with_name("recorded")


def main() -> None:
    session = SparkSession.builder.master("local[1]").getOrCreate()
    catalog = session._jsparkSession.sessionState()
    kinds: dict[str, str] = {}
    for registry in (catalog.functionRegistry(), catalog.tableFunctionRegistry()):
        names = registry.listFunction().iterator()
        while names.hasNext():
            name = names.next()
            if str(name.funcName()).isidentifier():
                kinds.setdefault(str(name.funcName()), str(registry.lookupFunction(name).get().getGroup()))
    (RECORDED / f"functions-{pyspark.__version__}.json").write_text(json.dumps(kinds, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
