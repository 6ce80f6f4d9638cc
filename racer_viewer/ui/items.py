"""Things in a list that can be chosen or changed: by keys, by the mouse and by a gamepad alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass
class Item:
    """One line. `hint` is shown while it is chosen; `enabled` may be False to show that there is something."""

    label: str
    hint: str = ""
    enabled: bool = True

    @property
    def value(self) -> str:
        """Shown at the right; empty for nothing."""
        return ""

    def accept(self) -> None:
        """It was pressed."""

    def change(self, by: int) -> None:
        """Left (−1) or right (+1) was pressed."""


@dataclass
class Button(Item):
    """Does something when it is pressed. `note` is shown at its right."""

    do: Callable[[], None] = lambda: None
    note: str = ""

    @property
    def value(self) -> str:
        return self.note

    def accept(self) -> None:
        self.do()


@dataclass
class Row(Item):
    """A line of a table: its label and its cells in columns. Enter does something; left and right mark it.

    marked: None if it cannot be marked. on_mark: told when it is, or no longer; it may set `marked` back.
    """

    cells: tuple[str, ...] = ()
    do: Callable[[], None] = lambda: None
    marked: bool | None = None
    on_mark: Callable[[bool], None] = lambda on: None

    def accept(self) -> None:
        self.do()

    def change(self, by: int) -> None:
        if self.marked is not None:
            self.marked = not self.marked
            self.on_mark(self.marked)


@dataclass
class Choice(Item):
    """One of several words."""

    options: Sequence[str] = ()
    chosen: int = 0
    changed: Callable[[int], None] = lambda number: None

    @property
    def value(self) -> str:
        return self.options[self.chosen] if self.options else ""

    def accept(self) -> None:
        self.change(1)

    def change(self, by: int) -> None:
        if self.options:
            self.chosen = (self.chosen + by) % len(self.options)
            self.changed(self.chosen)


@dataclass
class Slider(Item):
    """A number within limits."""

    low: float = 0.0
    high: float = 1.0
    step: float = 0.1
    number: float = 0.0
    unit: str = ""
    changed: Callable[[float], None] = lambda number: None

    @property
    def value(self) -> str:
        return f"{self.number * 100:.0f} %" if self.unit == "%" else f"{self.number:g} {self.unit}".strip()

    @property
    def share(self) -> float:
        """Of the way from the lowest to the highest."""
        return min(1.0, max(0.0, (self.number - self.low) / (self.high - self.low)))

    def change(self, by: int) -> None:
        self._set(self.number + by * self.step)

    def move_to(self, share: float) -> None:
        """To a place on the way, as the mouse points at it; on whole steps."""
        steps = round(share * (self.high - self.low) / self.step)
        self._set(self.low + steps * self.step)

    def _set(self, number: float) -> None:
        number = round(min(self.high, max(self.low, number)), 6)
        if number != self.number:
            self.number = number
            self.changed(number)


def toggle(label: str, on: bool, changed: Callable[[bool], None], hint: str = "") -> Choice:
    return Choice(label, hint, options=("off", "on"), chosen=int(on), changed=lambda number: changed(bool(number)))
