"""The search for settings."""

import json
import signal
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from racer_viewer.cli import main
from racer_viewer.training.config import RunConfig, load_run_config, parse_run_config
from racer_viewer.training.evaluation import EvaluatedEpisode, Evaluation
from racer_viewer.training.ray.tune import NO_LAP, SPACE, Trial, draw_settings, lap_of, nice_step, plot_trials

LAPPED = Trial(1, {"gamma": 0.99}, ((1000, 1003.0), (2000, 9.0), (3000, 7.5)))
GIVEN = Trial(0, {}, ((1000, 1004.0), (2000, 8.0)))


def test_the_first_trial_is_as_given_and_all_others_can_be_learned_with() -> None:
    first, *others = draw_settings(20, seed=3)
    assert first == {}
    for settings in others:
        assert set(settings) == set(SPACE)
        assert parse_run_config(settings) != RunConfig()


def test_the_same_seed_draws_the_same_settings() -> None:
    assert draw_settings(5, seed=1) == draw_settings(5, seed=1) != draw_settings(5, seed=2)


def test_trials_without_a_clean_lap_rank_below_all_others() -> None:
    lapped = EvaluatedEpisode(8.0, (7.5,), 900, 0, 0, False, 20.0, (20.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    scratched, far = replace(lapped, wall_ticks=1), replace(lapped, flying_laps=(), standing_lap=None)
    clean, touched, none = (lap_of([Evaluation("track-01", (each,))]) for each in (lapped, scratched, far))
    assert clean == 7.5
    assert min(touched, none) > NO_LAP


def test_the_picture_has_a_line_for_every_trial_and_only_of_clean_laps() -> None:
    root = ElementTree.fromstring(plot_trials([LAPPED, GIVEN]))
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert sorted(len(line.attrib["points"].split()) for line in lines) == [1, 2]
    assert "7.50 s" in plot_trials([LAPPED, GIVEN])


def test_a_search_without_a_clean_lap_says_so_in_its_picture() -> None:
    assert "No trial" in plot_trials([Trial(0, {}, ((1000, NO_LAP + 5.0),))])


@pytest.mark.parametrize("span", [0.1, 0.8, 7.3, 250_000.0])
def test_a_grid_has_a_few_lines_at_round_numbers(span: float) -> None:
    step = nice_step(span)
    assert 3 <= span / step <= 8.0 + 1e-6
    assert f"{step:.0e}"[0] in "125"


def test_one_trial_with_one_lap_is_a_picture_too() -> None:
    assert "7.50 s" in plot_trials([Trial(0, {}, ((1000, 7.5),))])


@pytest.mark.slow
def test_a_search_leaves_a_table_a_picture_and_a_config_to_train_with(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="python run.py --with ray test …")
    from tests.training.on_ray.ray_processes import Program, wait_for

    short = ["--num-cars", 8, "--set", "net=16,16", "--timesteps", 20_000]
    with Program("tune", "--trials", 3, *short, "--data-dir", tmp_path, log=tmp_path / "log") as search:
        assert search.wait() == 0, search.output
        wait_for(lambda: not search.others(), "all processes to end")
    folder = tmp_path / "tune" / "ppo-track-01"
    trials = json.loads((folder / "trials.json").read_text())
    assert sorted(trial["number"] for trial in trials) == [0, 1, 2]
    assert all(trial["curve"] and not trial["problem"] for trial in trials)
    ElementTree.parse(folder / "trials.svg")
    assert "Train with the best" in search.output or "No trial drove a clean lap" in search.output
    best = load_run_config(folder / "best.json")
    assert best == parse_run_config(trials[0]["settings"], best)
    again = ["--like", folder / "best.json", "--timesteps", 1024, "--name", "tuned"]
    assert main(["train", "--headless", *map(str, again), "--data-dir", str(tmp_path)]) == 0
    assert load_run_config(tmp_path / "runs" / "tuned" / "config.json").net == (16, 16)


@pytest.mark.slow
def test_trials_have_runners_of_their_own_if_asked(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="python run.py --with ray test …")
    from tests.training.on_ray.ray_processes import Program

    short = ["--num-cars", 8, "--set", "net=16,16", "--timesteps", 10_000]
    with Program("tune", "--trials", 2, "--runners", 1, *short, "--data-dir", tmp_path, log=tmp_path / "log") as search:
        assert search.wait() == 0, search.output
    trials = json.loads((tmp_path / "tune" / "ppo-track-01" / "trials.json").read_text())
    assert all(trial["curve"] and not trial["problem"] for trial in trials)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Ray has clusters on Linux only")
def test_a_search_on_a_cluster_that_drives_no_lap_says_what_to_do(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="python run.py --with ray test …")
    from tests.training.on_ray.ray_cluster import cluster
    from tests.training.on_ray.ray_processes import Program

    short = ["--num-cars", 8, "--set", "net=16,16", "--timesteps", 5_000]
    command = ["tune", "--trials", 4, "--address", "auto", *short, "--data-dir", tmp_path]
    with cluster(tmp_path / "cluster.log"), Program(*command, log=tmp_path / "log") as search:
        assert search.wait() == 0, search.output
    trials = json.loads((tmp_path / "tune" / "ppo-track-01" / "trials.json").read_text())
    assert all(trial["curve"] and not trial["problem"] for trial in trials)
    assert "No trial drove a clean lap: give them more --timesteps" in search.output


@pytest.mark.slow
def test_a_search_that_is_interrupted_keeps_what_it_found_and_ends_everything(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="python run.py --with ray test …")
    from tests.training.on_ray.ray_processes import Program, wait_for

    long = ["--num-cars", 8, "--set", "net=16,16", "--timesteps", 10**6]
    folder = tmp_path / "tune" / "ppo-track-01"
    with Program("tune", "--trials", 4, *long, "--data-dir", tmp_path, log=tmp_path / "log") as search:
        wait_for((folder / "best.json").exists, "something to be found")
        search.process.send_signal(signal.SIGINT)
        assert search.wait() == 128 + signal.SIGINT, search.output
        wait_for(lambda: not search.others(), "all processes to end")
    assert "The search was interrupted" in search.output
    assert any(trial["curve"] for trial in json.loads((folder / "trials.json").read_text()))
    load_run_config(folder / "best.json")
