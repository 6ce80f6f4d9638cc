"""`bench learn` measures real learning, from nothing to a lap."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from racer_viewer.bench.learn import learn
from racer_viewer.training.config import preset

pytestmark = pytest.mark.timing


@pytest.mark.slow
def test_quick_learns_a_clean_first_lap_from_nothing() -> None:
    learned = learn(replace(preset("ppo"), timesteps=600_000), pace=None)
    assert learned.first_lap is not None
    assert 0 < learned.first_lap.steps <= learned.total.steps
    assert 0.0 < learned.first_lap.seconds <= learned.total.seconds
    assert learned.pace is None


@pytest.mark.slow
def test_a_missed_milestone_is_exit_code_1() -> None:
    command = [sys.executable, "-m", "racer_viewer", "bench", "learn", "--json", "--seeds", "2", "--timesteps", "500"]
    settings = ["--set", "n_steps=16", "--set", "batch_size=256"]
    result = subprocess.run([*command, *settings], capture_output=True, text=True, timeout=240, env=dict(os.environ))
    assert result.returncode == 1
    figures = json.loads(result.stdout)
    assert [each["seed"] for each in figures["seeds"]] == [0, 1]
    assert figures["pace"] == pytest.approx(7.22)
    assert figures["seeds"][0]["first_lap"] is None


@pytest.mark.slow
def test_the_time_from_start_in_the_window_is_measured() -> None:
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}
    command = [sys.executable, "-m", "racer_viewer", "bench", "learn", "--wall", "--json", "--seeds", "1"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert result.returncode in (0, 1), result.stderr  # 1: a busy machine misses the goals
    [measured] = json.loads(result.stdout)["seeds"]
    assert 0.0 < measured["moving"] <= measured["first_lap"]["seconds"]
    assert measured["first_lap"]["steps"] > 0
