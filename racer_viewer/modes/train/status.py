"""The line at the top of a training: how far it is, and what is seen of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygame

from racer_viewer.modes.train.best_laps import lap_words
from racer_viewer.modes.train.pace import name_of
from racer_viewer.ui.paint import STATUS_HEIGHT, Words, status_line
from racer_viewer.ui.theme import Colour, Theme

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen

PICTURES = 8
"""Of the window from one look at the figures to the next, if there is time between them: nobody reads faster."""
STATES = {"learning": "learns", "starting": "starts"}
"""That have another word on screen."""


class TrainStatus:
    """Drawn anew some times a second, in the time that is left after a picture; if there is none, half as often.

    patient: in every picture, for films.
    """

    def __init__(self, train: TrainScreen, patient: bool = False) -> None:
        self._train, self._patient = train, patient
        self._plate = pygame.Surface((1, 1))
        self._look: tuple[Theme, int, str] = (train.app.theme, 1, "")
        self._age = 0

    def draw(self, surface: pygame.Surface) -> None:
        """Along the top."""
        look = self._train.app.theme, surface.get_width(), self._train.run.state
        self._age += 1
        if look != self._look or self._age >= 2 * PICTURES or self._patient:
            self._look = look
            self._refresh()
        surface.blit(self._plate, (0, 0))

    def draw_ahead(self) -> bool:
        """There is time before the next picture; False if there is nothing to do."""
        due = self._age >= PICTURES
        if due:
            self._refresh()
        return due

    def _refresh(self) -> None:
        theme, width, _ = self._look
        self._plate, self._age = _drawn_plate(theme, width, words_of(self._train)), 0


def _drawn_plate(theme: Theme, width: int, words: Words) -> pygame.Surface:
    plate = pygame.Surface((width, theme.px(STATUS_HEIGHT)), depth=32)
    plate.fill(theme.palette.panel[:3])
    status_line(plate, theme, words)
    return plate


def words_of(train: TrainScreen) -> Words:
    run, palette = train.run, train.app.theme.palette
    words = (
        (run.config.name, palette.text),
        (STATES.get(run.state, run.state), palette.good if run.state == "learning" else palette.accent),
        (f"{run.steps:,} of {run.total:,} steps", palette.text),
        (f"{run.steps_per_second:,.0f} steps/s" if train.lives else "", palette.faint),
        (name_of(run.pace) if train.lives else "", palette.faint),
        (lap_words(run.curves, train.circuit), palette.text),
        _policy(train),
    )
    return [each for each in words if each[0]]


def _policy(train: TrainScreen) -> tuple[str, Colour]:
    """Which one drives; while it learns, how old that is, and which one drives beside it."""
    policy, palette = train.policy, train.app.theme.palette
    if policy.beside:
        return f"beside it {policy.beside}", palette.accent
    if policy.age is not None:
        return f"policy {policy.age:.0f} s old", palette.faint
    return ("", palette.faint) if policy.is_newest else (policy.driver, palette.accent)
