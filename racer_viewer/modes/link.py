"""Somebody else's bridge: where it is, and how well a car on it can be seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BridgeAddress:
    """A server that has the cars. The token is for one that asks for it."""

    url: str
    token: str | None = None


@dataclass(frozen=True)
class Link:
    """What is known of the followed car over there.

    telemetry: the server says where it is; else it is followed with a copy.
    out_of_step_since: the tick since which that copy is only a guess.
    """

    url: str
    telemetry: bool
    out_of_step_since: int | None = None

    @property
    def sure(self) -> bool:
        """Whether what is drawn is what is there."""
        return self.out_of_step_since is None

    def report(self) -> str:
        """In a few words, for the corner of the window."""
        if self.telemetry:
            return "telemetry"
        return "in step" if self.sure else f"out of step since tick {self.out_of_step_since}: the car is a guess"
