"""The files with credentials that the properties of a broker name, and their modes."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from odradek.admin.doctor.security.facts import FileFacts
from odradek.conventions.properties_file import read_properties_file

SECRETS = re.compile(r"password|jaas\.config|secret|ssl\.keystore\.key|zookeeper\.auth")
METADATA_FILE = "odradek-metadata.sqlite"


def read_files(config_file: str) -> list[FileFacts]:
    """Failure if the properties cannot be read. Files that do not exist are left out."""
    properties = read_properties_file(config_file)
    candidates: dict[Path, str] = {}
    if any(SECRETS.search(name) for name in properties):
        candidates[Path(config_file)] = "passwords in properties"
    for name, value in properties.items():
        if name.endswith("ssl.keystore.location"):
            candidates[Path(value)] = "private key"
    for directory in (properties.get("log.dirs") or properties.get("log.dir") or "").split(","):
        if directory.strip():
            candidates[Path(directory.strip()) / METADATA_FILE] = "users of the broker"
    return [
        FileFacts(str(path), stat.S_IMODE(path.stat().st_mode), content)
        for path, content in candidates.items()
        if path.is_file()
    ]
