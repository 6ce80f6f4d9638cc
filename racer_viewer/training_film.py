"""The film of a training: from the first crash to the fast lap, as a time lapse with the curves beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pygame

from racer_env.engine import TICKS_PER_SECOND
from racer_env.errors import RacerError
from racer_viewer.films.film import Film
from racer_viewer.films.writers import open_writer
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.offscreen import offscreen_stage
from racer_viewer.training.live import WatchedRun, running_learner
from racer_viewer.ui.intents import IDLE

SHOT_SECONDS, LAST_SECONDS = 3.0, 9.0
"""For which each policy is seen, and the last one."""
USUAL_SECONDS = 45.0


def film_training(
    folder: Path,
    path: Path,
    data: Path,
    size: tuple[int, int],
    seconds: float | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Film:
    """Of a run that has ended: its kept policies drive again, most of them early ones, as most is learned then."""
    stage = offscreen_stage(data)
    stage.room.wait()
    stage.fit(size)
    if running_learner(folder) is not None:
        raise RacerError(f"{folder.name} is still learning: its film can be made when it has ended")
    screen = TrainScreen(stage, WatchedRun.attach(folder), patient=True)
    stage.push(screen)
    screen.hide_keys()
    try:
        count = len(screen.run.curves.policies)
        if not count:
            raise RacerError(f"{folder} has no policies that could drive again: it was trained before they were kept")
        return _filmed(screen, path, size, _shots(count, seconds or USUAL_SECONDS), progress)
    finally:
        stage.quit()


def _shots(count: int, seconds: float) -> list[tuple[int, int]]:
    """Which policies are seen, and for how many ticks."""
    shots = max(1, round((seconds - LAST_SECONDS) / SHOT_SECONDS))
    numbers = np.unique(np.geomspace(1, count, shots + 1).round().astype(int)) - 1
    last = max(SHOT_SECONDS, seconds - SHOT_SECONDS * (len(numbers) - 1))
    lengths = [SHOT_SECONDS] * (len(numbers) - 1) + [last]
    return [(int(number), round(length * TICKS_PER_SECOND)) for number, length in zip(numbers, lengths, strict=True)]


def _filmed(
    screen: TrainScreen,
    path: Path,
    size: tuple[int, int],
    shots: list[tuple[int, int]],
    progress: Callable[[float], None],
) -> Film:
    writer = open_writer(path, size)
    picture, ticks, total = pygame.Surface(writer.size, depth=32), 0, sum(length for _, length in shots)
    try:
        for number, length in shots:
            screen.policy.choose(number)
            screen.showcase.restart()
            for _ in range(length):
                screen.tick(IDLE)
                if ticks % writer.moments_per_frame == 0:
                    screen.draw(picture, 1.0)
                    writer.add(picture)
                ticks += 1
                progress(ticks / total)
        writer.end()
        place = writer.finish()
    except BaseException:
        writer.cancel()
        raise
    return Film(place, writer.frames, writer.frames * writer.moments_per_frame / TICKS_PER_SECOND)
