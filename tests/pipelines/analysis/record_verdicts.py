"""Records Spark's verdicts on the corpus: `python -m tests.pipelines.analysis.record_verdicts`.

Writes `recorded/verdicts.json`: for each query and version of Spark the condition of the error, null if it is accepted.
Verdicts of other versions are kept.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyspark

from tests.pipelines.analysis.corpus import TABLES, hand_written
from tests.pipelines.analysis.generated import generated
from tests.pipelines.analysis.spark_answers import create_tables, plain_session, refusal

VERDICTS = Path(__file__).with_name("recorded") / "verdicts.json"
GENERATED = 600
Verdicts = dict[str, dict[str, str | None]]


def every_query() -> list[str]:
    return list(dict.fromkeys([*hand_written(), *generated(GENERATED)]))


def read_verdicts() -> Verdicts:
    found: Verdicts = json.loads(VERDICTS.read_text()) if VERDICTS.exists() else {}
    return found


def main() -> None:
    before = read_verdicts()
    found: Verdicts = {}
    with plain_session() as session:
        create_tables(session, TABLES)
        for query in every_query():
            found[query] = {**before.get(query, {}), pyspark.__version__: refusal(session, query)}
    VERDICTS.parent.mkdir(exist_ok=True)
    VERDICTS.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    main()
