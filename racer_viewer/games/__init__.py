"""`racer-viewer games`: games in free run over TCP, with a window for whoever wants to see them."""

from racer_viewer.games.command import run

__all__ = ["run"]
