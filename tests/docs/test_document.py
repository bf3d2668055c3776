"""What a document is read as, and which outputs its own stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.document import Change, Command, Writing, actions, shows

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
Save this as `a.yml`:

```yaml
x: 1
```

A sentence that is longer. Add to
`a.yml`:

```yaml
y: 2
```

Change `a.yml`:

```diff
-x: 1
+x: 3
```

Without a file:

```yaml
only: shown
```

```console
$ odradek one
first
second
$ odradek two
```
"""


def test_blocks_are_files_changes_and_commands_in_their_order() -> None:
    assert actions(TEXT) == [
        Writing("a.yml", "x: 1\n"),
        Writing("a.yml", "y: 2\n", is_continued=True),
        Change("a.yml", "x: 1\n", "x: 3\n"),
        Command("odradek one", ("first", "second")),
        Command("odradek two", ()),
    ]


def test_files_are_written_continued_and_changed(tmp_path: Path) -> None:
    for action in actions(TEXT):
        if not isinstance(action, Command):
            action.write(tmp_path)
    assert (tmp_path / "a.yml").read_text() == "x: 3\ny: 2\n"


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        (["a", "b"], "a\nb\n"),
        (["took 0.4 s on  Monday"], "took  10 ms on Monday"),
        (["…", "b"], "1\n2\nb\n"),
        (["a", "…"], "a\n"),
        (["pid … runs"], "pid 4711 runs"),
        (["a batch 0: 1 row", "b batch 0: 1 row"], "b batch 0: 1 row\na batch 0: 1 row\n"),
        ([], ""),
    ],
)
def test_an_output_with_other_times_is_the_one_shown(expected: list[str], output: str) -> None:
    assert shows(expected, output)


@pytest.mark.parametrize(
    ("expected", "output"), [(["a"], "a\nb\n"), (["a", "…"], "b\n"), (["2 rows"], "3 rows"), ([], "error")]
)
def test_another_output_is_not(expected: list[str], output: str) -> None:
    assert not shows(expected, output)
