"""What a broker exposes, read by an independent parser."""

import urllib.error
import urllib.request
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from odradek.local.running_broker import RunningBroker

TIMEOUT_S = 30.0


class Page(NamedTuple):
    status: int
    text: str


def page(broker: RunningBroker, path: str, method: str = "GET") -> Page:
    assert broker.metrics_url is not None
    request = urllib.request.Request(broker.metrics_url.removesuffix("/metrics") + path, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return Page(response.status, response.read().decode())
    except urllib.error.HTTPError as refused:
        return Page(refused.code, refused.read().decode())


class Exposed:
    """The points of /metrics at one moment."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.points: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                series = self.points.setdefault(sample.name, {})
                key = tuple(sorted(sample.labels.items()))
                assert key not in series, f"{sample.name}{key} came twice"
                series[key] = sample.value

    def value(self, name: str, **labels: str) -> float:
        """The sum over the points with these labels; 0 if there are none."""
        wanted = set(labels.items())
        return sum(value for key, value in self.points.get(name, {}).items() if wanted <= set(key))

    def labels(self, name: str) -> set[str]:
        """The names of labels that the points of a metric have."""
        return {label for key in self.points.get(name, {}) for label, _ in key}


def exposed(broker: RunningBroker) -> Exposed:
    found = page(broker, "/metrics")
    assert found.status == 200
    return Exposed(found.text)
