"""Commands with examples in their help, and groups that import a command only when it is called."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Example = tuple[str, str]  # what it does, the command line
LazyCommands = Mapping[str, tuple[str, str]]  # name -> ("module:attribute", one line of help)

CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
OPTION_NAME = re.compile(r"(?<!\S)--?[\w-]+")


class HelpFormatter(click.HelpFormatter):
    """click's formatter, with colours and with the long names of options in one column."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, prefix or click.style("Usage:", bold=True) + " ")

    def write_heading(self, heading: str) -> None:
        super().write_heading(click.style(heading, bold=True))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 36, col_spacing: int = 2) -> None:
        super().write_dl([(self._term(first), second) for first, second in rows], col_max, col_spacing)

    def _term(self, text: str) -> str:
        aligned = f"    {text}" if text.startswith("--") else text
        return OPTION_NAME.sub(lambda name: click.style(name[0], fg="cyan"), aligned)

    def write_examples(self, examples: Sequence[Example]) -> None:
        """Write a comment and a command line for each example. Lines are not wrapped, so that they can be copied."""
        with self.section("Examples"):
            for meaning, line in examples:
                self.write(click.style(f"  # {meaning}", dim=True) + "\n" if meaning else "")
                self.write(f"  {line}\n")


class HelpContext(click.Context):
    formatter_class = HelpFormatter


class OptionalArgument(click.Argument):
    """An argument with its own metavar: usage shows it in brackets, errors name it without them."""

    def make_metavar(self, *arguments: Any) -> str:
        return f"[{super().make_metavar(*arguments)}]"

    def get_error_hint(self, *_arguments: Any) -> str:
        return f"'{self.metavar}'"


def first_sentence(text: str) -> str:
    return " ".join(re.split(r"(?<=\.)\s|\n\n", text, maxsplit=1)[0].split())


class Command(click.Command):
    """A command whose help ends in examples. In the help of its group, it has the first sentence of its own."""

    context_class = HelpContext

    def __init__(self, *arguments: Any, examples: Iterable[Example] = (), **settings: Any) -> None:
        settings["context_settings"] = {**CONTEXT_SETTINGS, **settings.get("context_settings", {})}
        super().__init__(*arguments, **settings)
        self.examples = tuple(examples)
        self.short_help = self.short_help or first_sentence(self.help or "")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        cast("HelpFormatter", formatter).write_examples(self.examples)


class Group(Command, click.Group):
    """A group of commands of its own module, and of commands whose modules are imported when they are called."""

    def __init__(self, *arguments: Any, lazy: LazyCommands | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.lazy = dict(lazy or {})
        self._is_listing = False

    def command(self, *examples: Example, **settings: Any) -> Callable[[Callable[..., Any]], Command]:  # type: ignore[override]  # a function is not declared without examples
        """Declares a command of this group."""

        def add(function: Callable[..., Any]) -> Command:
            made = command(*examples, **settings)(function)
            self.add_command(made)
            return made

        return add

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*self.lazy, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        location, summary = self.lazy[cmd_name]
        if self._is_listing:
            return click.Command(cmd_name, short_help=summary)
        module, _, attribute = location.partition(":")
        return cast("click.Command", getattr(importlib.import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that `args` begin with; a UsageError for an unknown one suggests similar names."""
        name = args[0] if args else ""
        if not name or name.startswith("-") or name in self.list_commands(ctx):
            return super().resolve_command(ctx, args)
        from odradek.conventions.failures import did_you_mean

        hint = did_you_mean(name, self.list_commands(ctx))
        raise click.UsageError(f"there is no command '{name}'{f'; {hint}' if hint else ''}", ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with self._listing():
            super().format_options(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        with self._listing():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _listing(self) -> Iterator[None]:
        """Within this context `get_command` returns a name and a line of help, and imports nothing."""
        self._is_listing = True
        try:
            yield
        finally:
            self._is_listing = False


def command(*examples: Example, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """`click.command` for a command with examples."""
    return click.command(cls=Command, examples=examples, **settings)


def group(*examples: Example, **settings: Any) -> Callable[[Callable[..., Any]], Group]:
    """`click.group` for a group with examples, and with `lazy` commands."""
    return click.group(cls=Group, examples=examples, **settings)
