"""The other end of a LineDriver, for clients in Python that run in a process of their own: their threads, loops and
warnings then cannot reach the test run.
"""

import json
import sys

from tests.clients.drivers.driver import Driver


def serve(driver: Driver) -> None:
    for line in sys.stdin:
        step = json.loads(line)
        try:
            answer = driver.perform(step["verb"], step["arguments"])
        except Exception as failure:  # goes into the transcript, where it is not what was expected
            answer = {"exception": f"{type(failure).__name__}: {failure}"}
        print(json.dumps(answer), flush=True)
    driver.close()
