"""Random circuits by a dial: length, twistiness and width, and a dice for the seed. The picture follows the dial."""

from __future__ import annotations

from dataclasses import replace
from random import randrange
from typing import TYPE_CHECKING

import pygame

from racer_env.engine import Track, load_circuit
from racer_env.engine.random_circuits import DIAL_RANGES, Dial, dial_id, parse_random_name, random_name
from racer_env.errors import CircuitError, in_one_line
from racer_viewer.circuits.draft import Draft
from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.circuits.preview import CircuitFacts, facts_of
from racer_viewer.modes.circuits import MAX_SEED, RANDOM, draw_track
from racer_viewer.modes.gallery.actions import drive_items
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.translation import _
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import Button, Slider
from racer_viewer.ui.theme import PADDING, TEXT, TEXT_LARGE
from racer_viewer.ui.views import ListView

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH_STEP, TWIST_STEP, WIDTH_STEP = 100.0, 0.05, 2.0
"""Steps of the sliders [units], as a share, [units]."""
MAX_PICTURE = 640
"""Maximum width of the picture at scale 1 [px]."""


class _Rolled:
    """A random circuit that was built, with a picture of it."""

    def __init__(self, circuit_id: str, size: tuple[int, int]) -> None:
        self.id, self.size = circuit_id, size
        self.track: Track = load_circuit(circuit_id)
        self.facts: CircuitFacts = facts_of(self.track)
        self.picture = draw_track(self.track, size)


class RandomDialScreen(Screen):
    """Sliders for a random circuit, its id, and what can be done with it.

    circuit_id: id of the circuit that the dial stands for.
    rolled: the circuit that is shown: it may be that of an earlier position of the dial.
    """

    def __init__(self, app: AppContext) -> None:
        self.seed, self.dial = randrange(MAX_SEED), Dial()
        try:
            if app.settings.circuit.startswith(RANDOM):
                seed, kind = parse_random_name(app.settings.circuit)
                self.seed, self.dial = (seed, kind) if isinstance(kind, Dial) else (self.seed, self.dial)
        except CircuitError:
            pass  # the settings have an id of another version
        self.rolled: _Rolled | None = None
        self._task: BackgroundTask[_Rolled] | None = None
        self._size = (1, 1)
        self._failed = ""
        view = ListView(_("Random circuit"), subtitle=lambda: self.circuit_id, width=460, draw_beside=self._draw_beside)
        super().__init__(app, view)
        self._fill()

    @property
    def circuit_id(self) -> str:
        return dial_id(self.seed, self.dial)

    def translate(self) -> None:
        self._fill()

    def tick(self, controls: Controls) -> None:
        """Take the circuit that was built, and begin the one that the dial stands for now."""
        if self._task is not None and self._task.done:
            task, self._task = self._task, None
            try:
                self.rolled, self._failed = task.result(), ""
            except CircuitError as error:
                self._failed = self.circuit_id
                self.app.notify(in_one_line(error))
        wanted, size = self.circuit_id, self._size
        shown = self.rolled is not None and (self.rolled.id, self.rolled.size) == (wanted, size)
        if self._task is None and not shown and wanted != self._failed and size != (1, 1):
            self._task = BackgroundTask(lambda: _Rolled(wanted, size), "racer-random-circuit")

    def _fill(self) -> None:
        self._dice = Button(
            _("Dice"), _("Another circuit with this length, twistiness and width"), on_press=self._roll,
            note=str(self.seed),
        )  # fmt: skip
        length, twist, width = (DIAL_RANGES[name] for name in ("length", "twist", "width"))
        dial = self.dial
        sliders = [
            Slider(_("Length"), _("Lap length"), low=length[0], high=length[1], step=LENGTH_STEP, number=dial.length,
                   on_change=self._turn("length")),
            Slider(_("Twistiness"), _("From nearly an oval to bend after bend"), low=twist[0], high=twist[1],
                   step=TWIST_STEP, number=dial.twist, unit="%", on_change=self._turn("twist")),
            Slider(_("Width"), _("Width of the road"), low=width[0], high=width[1], step=WIDTH_STEP,
                   number=dial.width, on_change=self._turn("width")),
        ]  # fmt: skip
        edit = Button(_("Edit a copy"), _("The copy is a circuit of your own"), on_press=self._edit)
        self.list.items = [self._dice, *sliders, *self._drive_items(), edit, Button(_("Back"), on_press=self.back)]

    def _drive_items(self) -> list[Button]:
        """Return items that drive on the circuit that the dial stands for when they are pressed."""

        def press(number: int) -> None:
            drive_items(self.app, self.circuit_id)[number].accept()

        names = drive_items(self.app, self.circuit_id)
        return [
            Button(each.label, each.hint, on_press=lambda number=number: press(number))  # type: ignore[misc]
            for number, each in enumerate(names)
        ]

    def _turn(self, name: str) -> Callable[[float], None]:
        def turn(value: float) -> None:
            self.dial = replace(self.dial, **{name: value})

        return turn

    def _roll(self) -> None:
        self.seed = randrange(MAX_SEED)
        self._dice.note = str(self.seed)

    def _edit(self) -> None:
        from racer_viewer.modes.editor import open_editor

        try:
            circuit = load_circuit(self.circuit_id).circuit
        except CircuitError as error:
            self.app.notify(in_one_line(error))
            return
        assert circuit is not None, "a random track has its circuit"
        draft: Draft = CircuitLibrary(self.app.data).copy_of(circuit)
        self.app.pop()
        open_editor(self.app, draft)

    def _draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        theme = self.app.theme
        left = area.right + theme.px(40)
        width = min(surface.get_width() - left - theme.px(32), theme.px(MAX_PICTURE))
        text_height = theme.line_height(TEXT_LARGE) + theme.line_height(TEXT) + theme.px(PADDING)
        self._size = max(2, width), max(2, area.height - text_height)
        if width < theme.px(160) or self.rolled is None:
            return
        rolled = self.rolled
        surface.blit(rolled.picture, (left, area.y))
        y = area.y + self._size[1] + theme.px(PADDING)
        surface.blit(theme.text(theme.truncate(random_name(rolled.id), width, TEXT_LARGE), TEXT_LARGE), (left, y))
        y += theme.line_height(TEXT_LARGE)
        line = _("{length:,.0f} units · tightest corner {radius:.0f} · road {narrow:.0f} to {wide:.0f} wide").format(
            length=rolled.facts.length, radius=rolled.facts.tightest_radius, narrow=rolled.facts.narrowest,
            wide=rolled.facts.widest,
        )  # fmt: skip
        smaller = theme.fitting(lambda each: each.width(line) <= width)
        surface.blit(smaller.text(smaller.truncate(line, width), TEXT, theme.palette.faint), (left, y))
