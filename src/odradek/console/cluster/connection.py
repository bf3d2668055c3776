"""The connection to the cluster, and the failures that it reports, under names that the rest of the console uses."""

from odradek.admin.cluster import Cluster
from odradek.admin.errors import BadCredentials, NoSuchTopic, NotAuthorized
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.output import age_text, count_text
from odradek.cli.framework.times import iso_text, parse_duration_ms, parse_time_ms
from odradek.console.cluster.permissions import NotAllowed
from odradek.conventions.sizes import size_text
from odradek.conventions.suggestions import similar_names

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
