"""The bundled agents drive as models/README.md says."""

import re
from pathlib import Path

import pytest

from racer_env.engine import circuits
from racer_viewer.agents import load_agent
from racer_viewer.training.evaluation import evaluate

MODELS = Path(__file__).parents[2] / "models"


def test_the_champion_laps_every_circuit_cleanly_at_the_pace_that_is_claimed() -> None:
    agent = load_agent(MODELS / "champion.zip")
    assert agent.normalised
    claimed = dict(re.findall(r"\| (track-\d\d) \| [\d.]+ s \| ([\d.]+) s \|", (MODELS / "README.md").read_text()))
    results = evaluate(agent.act, [circuit.build() for circuit in circuits()])
    assert {each.track for each in results} == set(claimed)
    for each in results:
        assert each.clean, each.track
        assert each.completion == 1.0, each.track
        assert each.best_flying == pytest.approx(float(claimed[each.track]), abs=0.02), each.track
