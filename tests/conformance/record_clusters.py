"""Records the tests that clusters of Apache Kafka pass in this harness: `python -m tests.conformance.record_clusters`.

With names of classes, only these are run, and their lines are replaced. Other outcomes are printed.
"""

import sys
import tempfile
from pathlib import Path

from tests.conformance.classes import CLUSTER_CLASSES, CLUSTER_NOT_RUN
from tests.conformance.harness import HERE, reference, run_class_on_apache_kafka

FILE_NAME = "cluster_reference.tsv"


def main() -> None:
    passed = reference(FILE_NAME) if (HERE / FILE_NAME).exists() else {}
    for class_name in sys.argv[1:] or [*CLUSTER_CLASSES, *CLUSTER_NOT_RUN]:
        with tempfile.TemporaryDirectory() as reports:
            outcomes = run_class_on_apache_kafka(class_name, Path(reports))
        passed[class_name] = {test for test, failure in outcomes.items() if not failure}
        print(f"{class_name}: {len(passed[class_name])} of {len(outcomes)} passed", flush=True)
        for test, failure in sorted(outcomes.items()):
            if failure:
                print(f"  {test}: {failure}", flush=True)
        lines = [f"{name}\t{test}\n" for name in sorted(passed) for test in sorted(passed[name])]
        (HERE / FILE_NAME).write_text("".join(lines))


if __name__ == "__main__":
    main()
