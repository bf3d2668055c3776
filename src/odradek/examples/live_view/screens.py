"""Shows a live view: on a terminal, as a line per second, or as JSON; a summary at the end."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from odradek.examples.live_view.text import progress_facts, progress_line, summary_facts, summary_lines

if TYPE_CHECKING:
    from typing import TextIO

    from rich.live import Live

    from odradek.examples.live_view.drawing import Frame
    from odradek.examples.live_view.model import LiveViewModel
    from odradek.examples.live_view.stages import Stages

FRAME_EVERY_S = 0.25
LINE_EVERY_S = 1.0


class LineScreen:
    """Prints a line every second; the stages of a start go to standard error."""

    interval_s = LINE_EVERY_S

    def __init__(self, title: str, output: TextIO, hint: str = "") -> None:
        self.title = title
        self.hint = hint
        self.bootstrap_servers = ""
        self.console = ""  # address of a page that shows the same records
        self.failure = ""  # of the pipeline, which is started again
        self.output = output
        self._reported = 0  # stages whose end was printed

    def open(self) -> None:
        """Nothing to prepare."""

    def show_start(self, stages: Stages) -> None:
        ended = [stage for stage in stages.stages if stage.ended_s is not None]
        for stage in ended[self._reported :]:
            note = f": {stage.note}" if stage.note else ""
            print(f"{stage.name}{note} ({stage.seconds(0.0):.1f} s)", file=sys.stderr, flush=True)
        self._reported = len(ended)

    def show_console(self, address: str) -> None:
        """Prints the address of the web page at once; may be called on another thread."""
        self.console = address
        print(f"console: {address}", file=sys.stderr, flush=True)

    def show_failure(self, text: str) -> None:
        """Prints why the pipeline does not run; empty when it runs again. May be called on another thread."""
        self.failure = text
        if text:
            print(text, file=sys.stderr, flush=True)

    def begin(self, model: LiveViewModel) -> None:
        self.say(f"watching {', '.join(model.topics.topics)} on {self.bootstrap_servers}; Ctrl-C stops")

    def turn(self, model: LiveViewModel, stages: Stages | None) -> None:
        if stages is not None:
            self.show_start(stages)
        self.show(model)

    def show(self, model: LiveViewModel) -> None:
        self.say(progress_line(model, time.time()))

    def end(self, model: LiveViewModel) -> None:
        for line in summary_lines(model, time.time()):
            self.say(line)
        if self.failure:
            self.say(self.failure)

    def close(self) -> None:
        """Nothing to restore."""

    def say(self, line: str) -> None:
        print(line, file=self.output, flush=True)


class JsonScreen(LineScreen):
    """Prints a JSON object every second, and a summary at the end."""

    def begin(self, model: LiveViewModel) -> None:
        facts = {"bootstrap_servers": self.bootstrap_servers, "topics": model.topics.topics}
        self.say(json.dumps({"kind": "ready", **facts, **({"console": self.console} if self.console else {})}))

    def show(self, model: LiveViewModel) -> None:
        self.say(json.dumps({"kind": "progress", **progress_facts(model, time.time())}))

    def end(self, model: LiveViewModel) -> None:
        failure = {"failure": self.failure} if self.failure else {}
        self.say(json.dumps({"kind": "summary", **summary_facts(model, time.time()), **failure}))


class LiveScreen(LineScreen):
    """A live view on the terminal's alternate screen; the summary is printed on the normal screen afterwards."""

    interval_s = FRAME_EVERY_S
    live: Live | None = None

    def open(self) -> None:
        from rich.live import Live  # noqa: PLC0415 - rich is only for those who watch

        self.live = Live(auto_refresh=False, screen=True)
        self.live.start()

    def show_start(self, stages: Stages) -> None:
        from odradek.examples.live_view.drawing import draw_start  # noqa: PLC0415 - imports rich

        assert self.live is not None
        self.live.update(draw_start(self.title, stages, time.time(), self._frame()), refresh=True)

    def show_console(self, address: str) -> None:
        """The next frame shows it."""
        self.console = address

    def show_failure(self, text: str) -> None:
        """The next frame shows it."""
        self.failure = text

    def begin(self, model: LiveViewModel) -> None:
        """Nothing to do: the first drawing follows with the first figures."""

    def turn(self, model: LiveViewModel, stages: Stages | None) -> None:
        if stages is None or stages.is_over:
            self.show(model)
        else:
            self.show_start(stages)

    def show(self, model: LiveViewModel) -> None:
        from odradek.examples.live_view.drawing import draw  # noqa: PLC0415 - imports rich

        assert self.live is not None
        self.live.update(draw(model, time.time(), self._frame()), refresh=True)

    def end(self, model: LiveViewModel) -> None:
        self.close()
        super().end(model)

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def _frame(self) -> Frame:
        from odradek.examples.live_view.drawing import Frame  # noqa: PLC0415 - imports rich

        assert self.live is not None
        width, height = self.live.console.size
        return Frame(width, height, self.bootstrap_servers, self.hint, self.console, self.failure)


def chosen_screen(title: str, hint: str, *, as_json: bool) -> LineScreen:
    kind = JsonScreen if as_json else LiveScreen if sys.stdout.isatty() else LineScreen
    return kind(title, sys.stdout, hint)
