"""Overlay panels: state, inputs, reward and policy of the followed car as numbers, bars and traces."""

from racer_viewer.render.overlays.inputs import SPEED_UNITS
from racer_viewer.render.overlays.overlays import OVERLAYS, Overlays
from racer_viewer.timing import lap_time

__all__ = ["OVERLAYS", "SPEED_UNITS", "Overlays", "lap_time"]
