"""The pages of the rules are right: each definition gets the verdict that its page gives it."""

from __future__ import annotations

import re

import pytest

from odradek.pipelines.planning.verdicts import Code
from tests.pipelines.generated.constructs import Construct
from tests.pipelines.rules.pages import Example, examples, pages

EXAMPLES = [each for page in pages() for each in examples(page)]
BY_SPARK = {Code.IMPLICIT_CAST, Code.INEXACT_KEY, Code.PYTHON_STATE}  # found by Spark's analysis, not by the plan


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{each.page}:{each.line}")
def test_definitions_have_the_verdicts_of_their_page(example: Example) -> None:
    assert example.judged().verdict == example.verdict


def test_pages_show_each_code_and_each_construct() -> None:
    codes = {code for each in EXAMPLES for code in re.findall(r"error (OP\d+)", each.verdict)}
    constructs = {construct for each in EXAMPLES for construct in each.judged().constructs}
    assert set(Code) - codes == BY_SPARK
    assert set(Construct) - constructs == set()
