"""Watching a run while it learns. What is here needs no torch: a window uses it.

`WatchedRun` is the window's side; the process that learns, at a terminal or by `learn_command`, does so with
`attended`, `conductor`, `narrator` and `swarm_callback`, which do need it.
"""

from racer_viewer.training.live.claim import running_learner
from racer_viewer.training.live.reading import load_curves
from racer_viewer.training.live.watched import RunState, WatchedRun

__all__ = ["RunState", "WatchedRun", "load_curves", "running_learner"]
