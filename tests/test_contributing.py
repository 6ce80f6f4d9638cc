"""The worked examples of CONTRIBUTING.md work as written."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pygame
import pytest

from racer_env.engine import Simulation, load_circuit
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.overlays.overlays import PANELS
from racer_viewer.snapshot import CarStyle, Snapshot
from racer_viewer.ui.intents import Command
from racer_viewer.ui.theme import Theme
from tests.documents import ROOT, Document
from tests.modes.person import Person

PAGE = Document("CONTRIBUTING.md")


def section(heading: str) -> list[tuple[str, str]]:
    """Return language and text of the code blocks below a heading."""
    text = re.split(r"^## ", PAGE.text.split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]
    return re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL)


def executed(heading: str) -> Mapping[str, Any]:
    """Run the Python blocks of a section and return their names."""
    names: dict[str, Any] = {"__name__": "example"}
    for language, code in section(heading):
        assert language == "python"
        exec(compile(code, f"CONTRIBUTING.md, {heading}", "exec"), names)
    return names


def patched(text: str, diff: str) -> str:
    """Apply the hunks of a diff without line numbers."""
    for hunk in diff.split("@@\n")[1:]:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        assert text.count(old) == 1, old
        text = text.replace(old, "".join(line[1:] for line in lines if line[0] in " +"))
    return text


def test_the_circuit_can_be_built_and_driven(tmp_path: Path) -> None:
    ((language, text),) = section("Add a circuit")
    assert language == "json"
    path = tmp_path / "paperclip.json"
    path.write_text(text, encoding="utf-8")
    track = load_circuit(path)
    assert track.circuit is not None
    assert track.circuit.medals is not None
    assert track.length > 1000.0


REWARDED = """
import json
from racer_env import RacerEnv, RacerVectorEnv
from racer_viewer.render.overlays.reward import RewardPanel
from racer_viewer.render.plots.figures import COMPONENT_KEYS
env = RacerEnv(config={"weights": {"slipPenalty": -0.5}})
env.reset(seed=1)
rows = [env.step([1.0, 1.0, 0.0]) for _ in range(120)]
envs = RacerVectorEnv(2, config={"weights": {"slipPenalty": -0.5}})
envs.reset(seed=1)
infos = [envs.step([[1.0, 1.0, 0.0]] * 2)[4] for _ in range(120)][-1]
names = [key for key in rows[-1][4] if key in {key.removeprefix("reward/") for key in COMPONENT_KEYS}]
print(json.dumps({
    "names": names,
    "slip": rows[-1][4]["slip"],
    "vector": float(infos["slip"][0]),
    "sum": sum(rows[-1][4][name] for name in names),
    "reward": rows[-1][1],
}))
"""


@pytest.mark.slow
def test_the_reward_component_needs_the_table_and_the_formula_only(tmp_path: Path) -> None:
    ((language, diff),) = section("Add a reward component")
    assert language == "diff"
    shutil.copytree(ROOT / "racer_env", tmp_path / "racer_env", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "assets", tmp_path / "assets")
    formula = tmp_path / "racer_env" / "engine" / "rewards.py"
    formula.write_text(patched(formula.read_text(encoding="utf-8"), diff), encoding="utf-8")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", REWARDED]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    shown = json.loads(result.stdout.splitlines()[-1])
    assert len(shown["names"]) == 7
    assert shown["slip"] == shown["vector"] < 0.0
    assert shown["sum"] == pytest.approx(shown["reward"])


def test_the_overlay_panel_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("racer_viewer.render.overlays.overlays.OVERLAYS", ("grip",))
    before = dict(PANELS)
    try:
        executed("Add an overlay panel")
        cars = np.array(Simulation(load_circuit("track-01")).cars)
        snapshot = Snapshot(load_circuit("track-01"), cars, (CarStyle("car", (0, 0, 0)),))
        surface = pygame.Surface((1280, 720), depth=32)
        (rect,) = Overlays(Theme()).draw(surface, snapshot, ("grip",))
        assert pygame.surfarray.array3d(surface.subsurface(rect)).any()
    finally:
        PANELS.clear()
        PANELS.update(before)


def test_the_screen_is_shown_and_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    person = Person(tmp_path)
    context = person.app.context
    below = context.top
    screen = executed("Add a screen")["AboutScreen"](context)
    context.push(screen)
    person.app.frame(1.0 / 60.0)
    screen.list.handle(Command.ACCEPT)
    assert context.notice == "MIT licence"
    screen.handle(Command.BACK)
    assert context.top is below
    person.app.close()


def test_the_verb_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command_line = import_module("racer_viewer.cli.main")
    verb = SimpleNamespace(**executed("Add a verb"))
    monkeypatch.setitem(sys.modules, "racer_viewer.cli.length", verb)
    monkeypatch.setattr(command_line, "VERBS", (*command_line.VERBS, "length"))
    assert command_line.main(["length", "track-01"]) == 0
    assert capsys.readouterr().out.endswith(" units\n")
