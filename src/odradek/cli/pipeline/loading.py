"""Reads the definitions of a file for the pipeline commands, and chooses the one that is meant."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

from odradek.cli.pipeline.definition_options import chosen, remember_secrets
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.checked import Definition
    from odradek.pipelines.definition.model import Pipeline


NEEDED_PACKAGES = {"yaml": "PyYAML", "sqlglot": "sqlglot", "fastavro": "fastavro"}


def require_packages(packages: Mapping[str, str] = NEEDED_PACKAGES) -> None:
    missing = [package for module, package in packages.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise Failure(f"pipelines need {' and '.join(missing)}; install them with: pip install 'odradek[pipelines]'")


def load(file: str, engine: str | None) -> list[Definition]:
    """The definitions of a file; Failure if the packages for reading them are not installed."""
    require_packages()
    from odradek.pipelines.definition.loading import load_file
    from odradek.pipelines.definition.vocabulary import Engine

    found = load_file(file, os.environ, None if engine is None else Engine(engine), chosen())
    for each in found:
        remember_secrets(() if each.pipeline is None else each.pipeline.all_secrets)
    return found


def choose(file: str, definitions: list[Definition], name: str | None) -> Pipeline:
    """The named pipeline, or the only one; Failure if a definition has errors."""
    for definition in definitions:
        errors = [each for each in definition.problems if each.severity == "error"]
        if errors:
            more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
            raise Failure(f"{errors[0].place}: {errors[0].text}{more} (see `odradek pipeline validate {file}`)")
    by_name = {each.pipeline.name: each.pipeline for each in definitions if each.pipeline is not None}
    if name is None and len(by_name) > 1:
        raise Failure(f"{file} defines {', '.join(by_name)}; choose one with --pipeline")
    if name is not None and name not in by_name:
        raise Failure(f"{file} defines no pipeline {name}; it has {', '.join(by_name)}")
    return by_name[name] if name is not None else next(iter(by_name.values()))
