"""Commands with examples in their help, and groups that import a command only when it is called.

rich-click renders the help: 0.15 s for `odradek --help`, rich included. Importing rich-click does not import rich, so
that a command which prints no help does not load it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import click
from rich_click import RichCommand, RichContext, RichGroup, RichHelpConfiguration, RichHelpFormatter

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Example = tuple[str, str]  # what it does, the command line
LazyCommands = Mapping[str, tuple[str, str]]  # name -> ("module:attribute", one line of help)

CONTEXT_SETTINGS: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 110,
    "rich_help_config": RichHelpConfiguration(
        theme="default-slim", show_arguments=False, enable_theme_env_var=False, text_paragraph_linebreaks="\n\n"
    ),
}


def write_examples(examples: Sequence[Example], formatter: RichHelpFormatter) -> None:
    """Write a comment and a command line for each example. Lines are not wrapped, so that they can be copied."""
    from rich.text import Text

    text = Text("Examples:\n", style=formatter.config.style_options_panel_title_style, no_wrap=True, overflow="ignore")
    for meaning, line in examples:
        if meaning:
            text.append(f"  # {meaning}\n", style="dim not bold")
        text.append(f"  {line}\n", style="not bold")
    text.rstrip()
    formatter.write(text)
    formatter.write("\n")


class OptionalArgument(click.Argument):
    """An argument with its own metavar: usage shows it in brackets, errors name it without them."""

    def make_metavar(self, *arguments: Any) -> str:
        return f"[{super().make_metavar(*arguments)}]"

    def get_error_hint(self, *_arguments: Any) -> str:
        return f"'{self.metavar}'"


class Command(RichCommand):
    """A command whose help ends in examples."""

    def __init__(self, *arguments: Any, examples: Sequence[Example] = (), **settings: Any) -> None:
        settings["context_settings"] = {**CONTEXT_SETTINGS, **settings.get("context_settings", {})}
        super().__init__(*arguments, **settings)
        self.examples = examples

    def format_epilog(self, ctx: RichContext, formatter: RichHelpFormatter) -> None:  # type: ignore[override]  # click calls it with rich-click's context and formatter
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


class Group(RichGroup):
    """A group that knows its commands by name and imports the module of the one that is called."""

    def __init__(
        self, *arguments: Any, lazy: LazyCommands | None = None, examples: Sequence[Example] = (), **settings: Any
    ) -> None:
        settings["context_settings"] = {**CONTEXT_SETTINGS, **settings.get("context_settings", {})}
        super().__init__(*arguments, **settings)
        self.lazy = dict(lazy or {})
        self.examples = examples
        self._is_listing = False

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*self.lazy, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        location, summary = self.lazy[cmd_name]
        if self._is_listing:
            return RichCommand(name=cmd_name, help=summary)
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

    def format_options(self, ctx: RichContext, formatter: RichHelpFormatter) -> None:  # type: ignore[override]
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

    def format_epilog(self, ctx: RichContext, formatter: RichHelpFormatter) -> None:  # type: ignore[override]
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


def command(
    name: str | None = None, *, examples: Iterable[Example], **settings: Any
) -> Callable[[Callable[..., Any]], Command]:
    """`click.command` for a command with examples."""
    return click.command(name, cls=Command, examples=tuple(examples), **settings)


def group(
    name: str | None = None, *, lazy: LazyCommands, examples: Iterable[Example], **settings: Any
) -> Callable[[Callable[..., Any]], Group]:
    """`click.group` for a group of lazily imported commands."""
    return click.group(name, cls=Group, lazy=lazy, examples=tuple(examples), **settings)
