"""Make the pictures of the README with the real app, driven by an agent.

python tools/screenshots.py [FOLDER]
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy")

import pygame
from PIL import Image

from racer_viewer.agents import load_agent, models_folder
from racer_viewer.app.menu import MenuScreen
from racer_viewer.app.window import App
from racer_viewer.circuits.draft import Draft
from racer_viewer.circuits.strokes import fit_stroke
from racer_viewer.modes.controls import NORMAL, SPEEDS, Action
from racer_viewer.modes.editor import EditorScreen, open_editor
from racer_viewer.modes.editor.trials import TrainingTrial
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.race import ENDLESS, Entrant, Race, RaceSetup
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import Screen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.watch import WatchScreen, open_watch
from racer_viewer.render.camera import Mode
from racer_viewer.replays import Replay, trace_replay
from racer_viewer.ui.intents import Controls

SIZE = (1280, 720)
QUALITY = 88
FRAME = 1.0 / 60.0
TRAINED_STEPS = 170_000
RIVALS = ("champion", "specialist-track-01", "learning-3-slow", "learning-2-first-lap")


class AgentSteering:
    """Steers the player's car with an agent."""

    def __init__(self, play: PlayScreen, model: str) -> None:
        self._agent, self._play = load_agent(model), play

    def update(self, controls: Controls, speed: float) -> Action:
        steer, throttle, brake = self._agent.act(self._play.view.after.observation).tolist()
        return steer, throttle, brake

    def release(self) -> None:
        """Do nothing."""


class ScreenshotTour:
    """Goes through the app and takes screenshots."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._app = App(Path(tempfile.mkdtemp(prefix="racer-pictures-")))
        self._context = self._app.context
        self._context.change(window=SIZE, tour="skipped")
        self._context.pop_to_menu()
        self._context.warmup.wait()

    def frames(self, count: int) -> None:
        for _ in range(count):
            self._app.frame(FRAME)
            while self._context.top is not None and self._context.top.draw_ahead():
                pass

    def press(self, *keys: str) -> None:
        for key in keys:
            for kind in (pygame.KEYDOWN, pygame.KEYUP):
                pygame.event.post(pygame.event.Event(kind, key=pygame.key.key_code(key), mod=0, unicode="", scancode=0))
            self.frames(1)

    def choose(self, label: str) -> None:
        listed = self._context.top.list  # type: ignore[union-attr]
        assert label in [item.label for item in listed.items], f"no item {label}"
        while listed.item.label != label:
            self.press("down")
        self.press("return")

    def take(self, name: str) -> Path:
        self._app.draw(1.0)
        picture = Image.frombytes("RGB", SIZE, pygame.image.tobytes(self._app.surface, "RGB"))
        path = self._folder / f"{name}.jpg"
        picture.save(path, quality=QUALITY)
        return path

    def show(self, *overlays: str) -> None:
        self._context.change(overlays=overlays)

    @property
    def top(self) -> Screen | None:
        return self._context.top

    def all(self) -> Iterator[Path]:
        yield from self._play()
        yield from self._watch()
        yield from self._race()
        yield from self._replay()
        yield from self._train()
        yield from self._editor()
        self._app.close()

    def _play(self) -> Iterator[Path]:
        self._context.change(circuit="track-03", opponents=RIVALS, laps=1)
        self.show("timing", "map", "names", "rays")
        self.choose("Play")
        self.choose("Start")
        play = self.top
        assert isinstance(play, PlayScreen)
        play.steering = AgentSteering(play, "specialist-track-03")  # type: ignore[assignment]
        self.frames(180 + 300)
        yield self.take("play")
        self.press("escape")
        self.choose("Main menu")

    def _watch(self) -> Iterator[Path]:
        self._context.change(circuit="track-02")
        self.choose("Watch")
        self.choose("champion")
        self.show("timing", "map", "rays", "reward", "inputs", "agent", "physics")
        self.frames(470)
        yield self.take("watch")
        self.press("escape")
        self.choose("Leave")

    def _race(self) -> Iterator[Path]:
        """Show four agents in their second episode."""
        names = ("champion", "specialist-track-02", "learning-5-clean", "learning-3-slow")
        open_watch(self._context, [models_folder() / f"{name}.zip" for name in names], "track-02")
        watch = self.top
        assert isinstance(watch, WatchScreen)
        self.show("timing", "names", "gates", "episodes")
        watch.playback.chosen = len(SPEEDS) - 1
        while watch.number == 1:
            self.frames(1)
        watch.playback.chosen = NORMAL
        watch.view.scene.camera.mode = Mode.WHOLE
        self.frames(600)
        yield self.take("whole-track")
        self.press("escape")
        self.choose("Leave")

    def _replay(self) -> Iterator[Path]:
        traces = [trace_replay(_driven("track-03", name)) for name in ("specialist-track-03", "champion")]
        self._context.push(ReplayScreen(self._context, traces))
        self.show("timing", "map", "names", "inputs", "reward")
        self.frames(480)
        yield self.take("replay")
        self._context.pop_to(MenuScreen)

    def _train(self) -> Iterator[Path]:
        """Train a real run until the agent can drive."""
        self._context.change(circuit="track-01")
        self.show("timing", "map", "rays", "reward", "agent")
        self.choose("Train")
        self.choose("Start")
        train = self.top
        assert isinstance(train, TrainScreen)
        while train.run.steps < TRAINED_STEPS and train.is_live:
            self.frames(1)
            time.sleep(FRAME)
        train.view.hide_keys()
        self.frames(12)
        yield self.take("train")
        train.run.stop(discard=True)
        while train.run.folder.exists():
            self.frames(1)
            time.sleep(FRAME)

    def _editor(self) -> Iterator[Path]:
        """Train on a circuit in the editor, and edit it meanwhile."""
        self._context.pop_to_menu()
        turns = [math.tau * number / 120 for number in range(120)]
        stroke = [
            (430 * math.cos(t) * (1 + 0.25 * math.cos(3 * t)), 290 * math.sin(t) * (1 + 0.2 * math.sin(2 * t)))
            for t in turns
        ]
        open_editor(self._context, Draft("Figure it out", points=fit_stroke(stroke)))
        editor = self.top
        assert isinstance(editor, EditorScreen)
        while not editor.document.drivable:
            self.frames(1)
        self.press("g")
        assert isinstance(editor.trial, TrainingTrial)
        while editor.trial.run.steps < TRAINED_STEPS:
            self.frames(1)
            time.sleep(FRAME)
        editor.document.select([6])
        editor.document.nudge(-10.0, -25.0)
        while editor.trial.is_live and editor.trial.run.steps < 2 * TRAINED_STEPS:
            self.frames(1)
            time.sleep(FRAME)
        yield self.take("editor")
        run = editor.trial.run
        run.stop(discard=True)
        while run.folder.exists():
            self.frames(1)
            time.sleep(FRAME)


def _driven(circuit: str, model: str) -> Replay:
    """Return a replay of two laps of an agent."""
    race = Race(RaceSetup(circuit, (Entrant(model, (0, 0, 0), load_agent(model)),), config=ENDLESS))
    tick = race.step()
    while len(tick.laps) < 2:
        tick = race.step()
    replay = tick.followed.replay()
    assert replay is not None
    return replay


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "pictures")
    target.mkdir(parents=True, exist_ok=True)
    for made in ScreenshotTour(target).all():
        print(made)
