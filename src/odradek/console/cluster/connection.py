"""The connection to the cluster, and the failures that it reports, under names that the rest of the console uses."""

from odradek.admin.cluster import Cluster
from odradek.admin.errors import BadCredentials, NoSuchTopic, NotAuthorized
from odradek.console.cluster.permissions import NotAllowed
from odradek.conventions.failures import Failure, similar_names
from odradek.conventions.figures import age_text, count_text, iso_text, parse_duration_ms, parse_time_ms, size_text

__all__ = [
    "BadCredentials",
    "Cluster",
    "Failure",
    "NoSuchTopic",
    "NotAllowed",
    "NotAuthorized",
    "age_text",
    "count_text",
    "iso_text",
    "parse_duration_ms",
    "parse_time_ms",
    "similar_names",
    "size_text",
]
