"""The reward lab: weights and terms of a reward, and what it pays for good and bad drives."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import msgspec
import pygame

from racer_env.engine import REWARD_COMPONENTS, Config, load_circuit, parse_config
from racer_env.engine.rewards import MAX_TERMS
from racer_env.engine.scoring import record_drive
from racer_env.errors import RacerError, in_one_line
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.train.formula_screen import FormulaScreen
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.replays import ReplayError, load_replay
from racer_viewer.replays.trace import is_track_of
from racer_viewer.training.reward_lab import (
    PERSON,
    QUALITY,
    DriveScore,
    LabDrive,
    LabReport,
    main_warnings,
    paid_on,
    reference_drives,
    score_reward,
)
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import Button, Item, Slider
from racer_viewer.ui.theme import TEXT, TEXT_SMALL, Theme
from racer_viewer.ui.views import ListView

DRIVE_NAMES = (
    mark("a drive of yours"), mark("the champion's lap"), mark("a clean lap"), mark("a slow lap"),
    mark("a zigzag lap"), mark("a corner cutter"), mark("a crash"), mark("driving in circles"), mark("standing still"),
)  # fmt: skip
"""Names of the reference drives, collected here for translation."""
OWN_REPLAYS = 3
"""Maximum number of the user's replays that are scored."""
READ_REPLAYS = 40
"""Maximum number of replays that are looked at for ones on the circuit."""
ROW, LABEL_SHARE = 25, 0.44
"""Height of a row at scale 1 [px], and share of the width for its name."""
MIN_WIDTH = 220
"""Minimum width of the ranking at scale 1 [px]."""

Accept = Callable[[Config], None]
Compare = Callable[[Config, Config], None]


class RewardLabScreen(Screen):
    """Weights and terms beside a ranking of good and bad drives, which follows every change.

    circuit: circuit of the drives. in_units: whether progress is paid per 1,000 units.
    on_accept: receives the reward when the user takes it. accept: label of the button for that.
    on_compare: receives the reward before and after the changes, to train with both; None offers no comparison.
    """

    def __init__(
        self,
        app: AppContext,
        rewards: Config,
        circuit: str,
        in_units: bool,
        on_accept: Accept,
        accept: str = "",
        on_compare: Compare | None = None,
    ) -> None:
        super().__init__(app, ListView(_("Reward lab"), draw_beside=self._draw_ranking, width=430, darkness=245))
        self.rewards, self._before = rewards, rewards
        """Reward as it is edited."""
        self._circuit, self._in_units, self._on_accept = circuit, in_units, on_accept
        self._accept_label, self._on_compare = accept or _("Use this reward"), on_compare
        self.drives: tuple[LabDrive, ...] = ()
        self.report = LabReport((), ())
        self._problem = ""
        self._task: BackgroundTask[tuple[LabDrive, ...]] | None = BackgroundTask(self._load, "racer-reward-lab")
        self._fill()

    @property
    def scored(self) -> bool:
        """True when the drives are simulated and scored."""
        return bool(self.report.scores)

    def tick(self, controls: Controls) -> None:
        super().tick(controls)
        if self._task is not None and self._task.done:
            task, self._task = self._task, None
            try:
                self.drives = task.result()
            except (RacerError, OSError) as error:
                self._problem = in_one_line(error)
            self._score()

    def back(self) -> None:
        """Ask before changes are dropped."""
        if self.rewards == self._before:
            self.app.pop()
            return
        buttons = [
            Button(self._accept_label, on_press=partial(self._close_question, self._accept)),
            Button(_("Discard changes"), on_press=partial(self._close_question, self.app.pop)),
            Button(_("Keep editing"), on_press=self.app.pop),
        ]
        self.app.push(MessageScreen(self.app, _("Use the changed reward?"), _("The reward was changed."), buttons))

    def _close_question(self, action: Callable[[], None]) -> None:
        self.app.pop()
        action()

    def _accept(self) -> None:
        self.app.pop()
        self._on_accept(self.rewards)

    def _compare(self) -> None:
        """Train with the reward before and after the changes."""
        if self._on_compare is None or self.rewards == self._before:
            self.app.notify(_("Change something first: both rewards are the same"))
            return
        self.app.pop()
        self._on_compare(self._before, self.rewards)

    def _load(self) -> tuple[LabDrive, ...]:
        """Simulate the reference drives and the user's newest replays on the circuit."""
        track = load_circuit(self._circuit)
        folder, own = self.app.data / "replays", list[LabDrive]()
        paths = sorted(folder.glob("*.racer"), key=lambda path: -path.stat().st_mtime)[:READ_REPLAYS]
        for path in paths:
            if len(own) == OWN_REPLAYS:
                break
            try:
                replay = load_replay(path)
                if is_track_of(track, replay.circuit):
                    drive = record_drive(track, replay.actions, replay.start, replay.seed, replay.put_back)
                    own.append(LabDrive(PERSON, drive, f"{replay.driver or path.stem} {replay.date:%Y-%m-%d}"))
            except (ReplayError, RacerError):
                continue
        return (*reference_drives(track), *own)

    def _fill(self) -> None:
        weights, items = self.rewards.to_json()["weights"], list[Item]()
        for component in REWARD_COMPONENTS:
            low, high = component.weight_range
            number = float(weights[component.weight_key])
            items.append(
                Slider(
                    _(component.label).capitalize(), low=min(low, number), high=max(high, number),
                    step=component.weight_step, number=number, on_change=partial(self._set_weight, component.weight),
                )
            )  # fmt: skip
        for name, formula in self.rewards.formulas.items():
            items.append(Button(name, formula, on_press=partial(self._edit, name), note=_("edit")))
        full = len(self.rewards.formulas) >= MAX_TERMS
        hint = _("A formula over speed, slip, distances and more") if not full else _("There are 8 terms already")
        accept = Button(self._accept_label, on_press=self._accept)
        add = Button(_("Add a term"), hint, enabled=not full, on_press=partial(self._edit, ""))
        self.list.items = [accept, *items, add]
        if self.rewards.formulas:
            remove = Button(_("Remove the last term"), next(reversed(self.rewards.formulas)), on_press=self._remove)
            self.list.items.append(remove)
        if self._on_compare is not None:
            hint = _("Trains with the reward from before and with this one, same seed, and shows both together")
            self.list.items.append(Button(_("Compare two rewards"), hint, on_press=self._compare))
        if self.rewards != Config():
            self.list.items.append(
                Button(_("Default rewards"), _("The six components with their usual weights"), on_press=self._reset)
            )

    def _set_weight(self, name: str, number: float) -> None:
        self._change(msgspec.structs.replace(self.rewards, weights=msgspec.structs.replace(
            self.rewards.weights, **{name: number}
        )))  # fmt: skip

    def _edit(self, name: str) -> None:
        if not name and len(self.rewards.formulas) >= MAX_TERMS:
            return
        others = {each: text for each, text in self.rewards.formulas.items() if each != name}
        formula = self.rewards.formulas.get(name, "")
        self.app.push(FormulaScreen(self.app, name, formula, others, self.drives, partial(self._take, name)))

    def _take(self, before: str, name: str, formula: str) -> None:
        """Take a term that was edited; it keeps its place."""
        terms = {name if each == before else each: text for each, text in self.rewards.formulas.items()}
        self._set_terms({**terms, name: formula})

    def _remove(self) -> None:
        self._set_terms(dict(list(self.rewards.formulas.items())[:-1]))

    def _reset(self) -> None:
        episode = self.rewards.episode
        self._change(msgspec.structs.replace(Config(), episode=episode))
        self._fill()

    def _set_terms(self, terms: dict[str, str]) -> None:
        content = {key: value for key, value in self.rewards.to_json().items() if key != "terms"}
        self._change(parse_config({**content, "terms": terms}))
        self._fill()

    def _change(self, rewards: Config) -> None:
        self.rewards = rewards
        self._score()

    def _score(self) -> None:
        if self.drives:
            paid = paid_on(self.rewards, load_circuit(self._circuit), self._in_units)
            self.report = score_reward(paid, self.drives)

    def _draw_ranking(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Draw the drives by what they earn, and the warnings below."""
        theme = self.app.theme
        left = area.right + theme.px(30)
        place = pygame.Rect(left, area.y, surface.get_width() - left - theme.px(30), area.height)
        if place.width < theme.px(MIN_WIDTH):
            return
        if not self.scored:
            words = self._problem or _("Simulating good and bad drives ...")
            surface.blit(theme.text(theme.truncate(words, place.width), TEXT, theme.palette.faint), place.topleft)
            return
        y = self._draw_scores(surface, theme, place)
        self._draw_warnings(surface, theme, pygame.Rect(place.x, y, place.width, place.bottom - y))

    def _draw_scores(self, surface: pygame.Surface, theme: Theme, place: pygame.Rect) -> int:
        palette, row, y = theme.palette, theme.px(ROW), place.y
        head = theme.truncate(_("Reward of an episode, and per second"), place.width, TEXT_SMALL)
        surface.blit(theme.text(head, TEXT_SMALL, palette.faint), (place.x, y))
        y += theme.line_height(TEXT_SMALL) + theme.px(6)
        largest = max(abs(each.episode) for each in self.report.scores) or 1.0
        figures = [f"{each.episode:+.4g}   {each.per_second:+.3g}" for each in self.report.scores]
        number = max(theme.width(text, TEXT_SMALL) for text in figures) + theme.px(10)
        label = round(place.width * LABEL_SHARE) - theme.px(8)
        names = [_(each.label) for each in self.report.scores]
        fitted = theme.fitting(lambda smaller: all(smaller.width(name, TEXT_SMALL + 2) <= label for name in names))
        for each, words in zip(self.report.scores, figures, strict=True):
            name = fitted.truncate(_(each.label), label, TEXT_SMALL + 2)
            surface.blit(fitted.text(name, TEXT_SMALL + 2, self._colour(theme, each)), (place.x, y))
            bar = pygame.Rect(place.x + label + theme.px(8), y + theme.px(5), place.width - label - number, theme.px(9))
            bar.width = max(theme.px(10), bar.width - theme.px(8))
            surface.fill(palette.line, bar)
            length = round(bar.width * min(1.0, abs(each.episode) / largest))
            surface.fill(palette.good if each.episode >= 0.0 else palette.bad, (bar.x, bar.y, length, bar.height))
            figure = theme.text(words, TEXT_SMALL, palette.text)
            surface.blit(figure, (place.right - figure.get_width(), y + theme.px(2)))
            y += row
        return y + theme.px(8)

    def _colour(self, theme: Theme, each: DriveScore) -> tuple[int, int, int]:
        """Return the colour of a drive's name: red if it earns more than a better one."""
        wrong = any(warning.worse.label == each.label for warning in self.report.warnings)
        return theme.palette.bad if wrong else theme.palette.text if QUALITY[each.kind] > 1 else theme.palette.faint

    def _draw_warnings(self, surface: pygame.Surface, theme: Theme, place: pygame.Rect) -> None:
        """Draw a line for each drive that earns too much."""
        palette, y, size = theme.palette, place.y, TEXT_SMALL + 2
        found = main_warnings(self.report)
        lines = [
            _("{worse} earns more than {better}").format(worse=_(each.worse.label), better=_(each.better.label))
            if not math.isclose(each.worse.episode, each.better.episode)
            else _("{worse} earns as much as {better}").format(worse=_(each.worse.label), better=_(each.better.label))
            for each in found
        ]
        words = [(f"{line[:1].upper()}{line[1:]}", palette.bad) for line in lines]
        for text, colour in words or [(_("No worse drive earns more than a better one."), palette.good)]:
            for line in theme.wrapped(text, place.width, size):
                if y + theme.line_height(size) > place.bottom:
                    return
                surface.blit(theme.text(line, size, colour), (place.x, y))
                y += theme.line_height(size)
            y += theme.px(4)
