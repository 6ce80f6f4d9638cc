"""The bundled agents drive as models/README.md says."""

import re
import zipfile
from pathlib import Path

import pytest

from racer_env.engine import circuits, load_circuit
from racer_viewer.agents import bundled_models, load_agent, models_folder
from racer_viewer.agents.load import bundled_tracks
from racer_viewer.training.config import preset
from racer_viewer.training.evaluation import evaluate

README = (models_folder() / "README.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+?)(?:,| to |$).*?\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE))
LIMITS = {"track-01": 6.42, "track-02": 15.78, "track-03": 16.86}
"""Shortest flying laps [s] that the road allows."""


def claims(section: str) -> dict[str, float]:
    """Best flying laps by circuit."""
    return {
        circuit: float(lap)
        for circuit, lap in re.findall(r"\| (track-\d\d) \| [\d.]+ s \| ([\d.]+) s \| 0 \| 0 \|", SECTIONS[section])
    }


def check(model: str, claimed: dict[str, float]) -> None:
    """Check that a model laps these circuits cleanly in the documented times."""
    agent = load_agent(model)
    assert agent.normalised
    for each in evaluate(agent.act, [load_circuit(name) for name in claimed]):
        assert each.clean, each.track
        assert each.completion == 1.0, each.track
        assert each.best_flying == pytest.approx(claimed[each.track], abs=0.02), each.track


def test_the_champion_laps_every_circuit_cleanly_in_the_documented_time() -> None:
    claimed = claims("champion")
    assert set(claimed) == {circuit.id for circuit in circuits()}
    check("champion", claimed)
    assert all(claimed[name] <= 1.06 * limit for name, limit in LIMITS.items())


@pytest.mark.parametrize("circuit", LIMITS)
def test_each_specialist_is_within_three_percent_of_the_limit(circuit: str) -> None:
    lap = claims("specialist-track-01")[circuit]
    check(f"specialist-{circuit}", {circuit: lap})
    assert lap <= 1.03 * LIMITS[circuit]


def test_the_sac_agent_laps_its_circuit() -> None:
    check("sac-track-01", claims("sac-track-01"))
    assert load_agent("sac-track-01").info.algorithm == "SAC"


@pytest.mark.slow
def test_the_champion_drives_unseen_circuits() -> None:
    """Drive 20 of the 200 circuits in models/README.md; all 200 take a minute."""
    unseen = [load_circuit(f"random:{seed}") for seed in range(1000, 1020)]
    results = evaluate(load_agent("champion").act, unseen, enough_laps=2)
    assert sum(each.completion == 1.0 and each.laps >= 2 for each in results) >= 19


@pytest.mark.slow
def test_the_champion_completes_at_least_95_percent_of_200_unseen_circuits() -> None:
    completed = clean = 0
    for first in range(1000, 1200, 50):
        unseen = [load_circuit(f"random:{seed}") for seed in range(first, first + 50)]
        results = evaluate(load_agent("champion").act, unseen, enough_laps=2)
        completed += sum(each.completion == 1.0 and each.laps >= 2 for each in results)
        clean += sum(each.completion == 1.0 and each.clean for each in results)
    assert completed >= 190
    assert clean >= 180


def test_the_learning_series_goes_from_the_wall_to_a_clean_lap() -> None:
    track = [load_circuit("track-01")]
    names = [path.stem for path in bundled_models() if path.stem.startswith("learning-")]
    assert len(names) == 5
    results = [evaluate(load_agent(name).act, track)[0] for name in names]
    laps = [each.best_flying or 0.0 for each in results]
    assert results[0].laps == 0
    assert results[0].wall_ticks > 1000
    assert results[1].laps == 1
    assert laps[2] > 10.0 > laps[3] > laps[4] > 6.0
    assert [each.clean for each in results] == [False, False, False, False, True]


def test_bundled_models_are_small_and_name_no_path() -> None:
    models = bundled_models()
    assert models[0].stem == "champion"
    for path in models:
        assert path.stat().st_size < 1_000_000
        with zipfile.ZipFile(path) as archive:
            assert "system_info.txt" not in archive.namelist()


def test_where_each_was_trained_is_known() -> None:
    tracks = bundled_tracks()
    assert set(tracks) == {path.stem for path in bundled_models()}
    known = {circuit.id for circuit in circuits()}
    for name, trained_on in tracks.items():
        assert trained_on
        assert {track for track in trained_on if not track.startswith("random:")} <= known
        if track := re.search(r"track-\d\d$", name):
            assert trained_on == (track[0],)
    assert set(tracks["champion"]) == set(preset("ppo", "champion").tracks)


def test_a_bare_name_is_a_file_here_before_it_is_a_bundled_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_agent("champion").info.path == models_folder() / "champion.zip"
    (tmp_path / "champion.zip").write_bytes((models_folder() / "sac-track-01.zip").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert load_agent("champion").info.algorithm == "SAC"
