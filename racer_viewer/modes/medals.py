"""What medals look like."""

from racer_viewer.ui.theme import Colour

MEDALS: dict[str, Colour] = {"gold": (255, 206, 72), "silver": (206, 212, 220), "bronze": (214, 142, 86)}
"""Colours, the best first."""
