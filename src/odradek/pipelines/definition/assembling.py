"""Makes a definition of its tree: included files, profile, parameters, then parsing and checks.

YAML and Python definitions both end here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checked import Definition, finished, way
from odradek.pipelines.definition.choices import NO_CHOICES
from odradek.pipelines.definition.including import with_includes, with_relative_paths
from odradek.pipelines.definition.nodes import MappingNode
from odradek.pipelines.definition.parsing import parse_pipeline
from odradek.pipelines.definition.profiles import parameters_of, with_profile
from odradek.pipelines.definition.substituting import Substitution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.choices import Choices
    from odradek.pipelines.definition.nodes import Node
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.definition.vocabulary import Engine


def assembled(
    root: Node,
    environment: Mapping[str, str],
    problems: Problems,
    engine: Engine | None = None,
    choices: Choices = NO_CHOICES,
) -> Definition:
    """The definition of a tree whose variables are not replaced."""
    whole = root
    if isinstance(root, MappingNode):
        combined = with_profile(
            with_includes(root, environment, problems), choices.chosen_profile(environment), problems
        )
        parameters = parameters_of(combined, choices.parameters, problems)
        kept = MappingNode(tuple(each for each in combined.entries if each[0].text != "parameters"), combined.place)
        whole = Substitution(parameters, environment, problems).of(kept)
        assert isinstance(whole, MappingNode)
        whole = with_relative_paths(whole)
    return finished(parse_pipeline(whole, problems), problems, engine, way(environment))
