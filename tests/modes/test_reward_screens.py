"""The reward lab in the window: sliders, terms, the formula editor, ranking and warnings."""

from dataclasses import replace

import pygame
import pytest

from racer_env.engine import Config
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.train.formula_screen import FormulaScreen, suggestions
from racer_viewer.modes.train.reward_screen import RewardLabScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import TrainSetupScreen
from racer_viewer.render.plots.figures import content_of
from racer_viewer.replays import save_replay
from racer_viewer.training.config import load_run_config, preset
from racer_viewer.training.reward_lab import CUTTER, STANDSTILL, main_warnings
from racer_viewer.training.run_lock import running_learner
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.theme import ORDINARY
from tests.modes.person import Person
from tests.replays.replay_drives import ring_run


def typed(person: Person, text: str) -> None:
    for sign in text:
        pygame.event.post(pygame.event.Event(pygame.TEXTINPUT, text=sign))
    person.frames()


@pytest.fixture
def setup(person: Person) -> TrainSetupScreen:
    person.app.context.push(TrainSetupScreen(person.app.context))
    return person.top(TrainSetupScreen)


@pytest.fixture
def lab(person: Person, setup: TrainSetupScreen) -> RewardLabScreen:
    person.choose("Reward")
    screen = person.top(RewardLabScreen)
    person.until(lambda: screen.scored, "the scores")
    return screen


def test_a_reward_is_scored_at_once_and_again_after_every_change(person: Person, lab: RewardLabScreen) -> None:
    before = lab.report
    assert lab.rewards == preset("ppo").rewards
    person.go_to("Progress")
    person.press("right")
    assert lab.rewards.weights.progress == pytest.approx(1.1)
    assert lab.report.scores[0].episode > before.scores[0].episode


def test_a_bad_reward_is_warned_about(person: Person, lab: RewardLabScreen) -> None:
    person.go_to("Progress")
    for _ in range(12):
        person.press("left")
    person.choose("Add a term")
    typed(person, "hurry")
    person.press("tab")
    typed(person, "-0.01")
    person.press("return")
    assert lab.rewards.formulas == {"hurry": "-0.01"}
    assert lab.report.scores[0].kind == STANDSTILL
    assert any(each.worse.kind == STANDSTILL for each in main_warnings(lab.report))
    assert all(each.worse.kind != CUTTER or each.better for each in lab.report.warnings)


def test_a_term_is_written_with_completion_and_marked_errors(person: Person, lab: RewardLabScreen) -> None:
    person.choose("Add a term")
    editor = person.top(FormulaScreen)
    typed(person, "my line")
    assert editor.problem is not None
    for _ in range(7):
        person.press("backspace")
    typed(person, "line")
    person.press("tab")
    typed(person, "0.001 * heading_err")
    assert editor.problem is not None
    assert "did you mean heading_error" in str(editor.problem)
    person.press("return")
    assert person.top(FormulaScreen) is editor, "a wrong formula is not accepted"
    assert "did you mean" in person.app.context.notice
    person.press("tab")
    assert editor.formula.text == "0.001 * heading_error"
    assert editor.problem is None
    person.press("return")
    assert person.top(RewardLabScreen) is lab
    assert lab.rewards.formulas == {"line": "0.001 * heading_error"}
    person.choose("line")
    person.press("home")
    typed(person, "-")
    person.press("return")
    assert lab.rewards.formulas == {"line": "-0.001 * heading_error"}
    person.choose("Remove the last term")
    assert lab.rewards.formulas == {}


def test_arrows_and_the_mouse_choose_a_suggestion(person: Person, lab: RewardLabScreen) -> None:
    person.choose("Add a term")
    editor = person.top(FormulaScreen)
    person.press("tab")
    typed(person, "ray_")
    assert [each.insert for each in editor.found][:3] == ["ray_0", "ray_1", "ray_2"]
    person.press("down", "down", "tab")
    assert editor.formula.text == "ray_2"
    typed(person, " + mi")
    person.frames()
    rows = editor.suggestion_rows
    person.click(*rows[0].center)
    assert editor.formula.text == "ray_2 + min("
    person.press("escape")
    assert person.top(RewardLabScreen) is lab


def test_the_form_trains_with_the_reward_of_the_lab(
    person: Person, setup: TrainSetupScreen, lab: RewardLabScreen
) -> None:
    assert setup.config.rewards == preset("ppo").rewards
    person.go_to("Wall")
    person.press("left")
    person.choose("Use this reward")
    assert person.top(TrainSetupScreen) is setup
    assert setup.config.rewards.weights.wall_penalty == pytest.approx(lab.rewards.weights.wall_penalty)
    assert setup.list.find("Reward").value == "own"
    person.go_to("Preset")
    person.press("right")
    assert setup.list.find("Reward").value == "of the preset"


def test_changes_are_not_dropped_without_a_question(person: Person, lab: RewardLabScreen) -> None:
    person.go_to("Wall")
    person.press("left", "escape")
    person.top(MessageScreen)
    person.choose("Discard changes")
    person.top(TrainSetupScreen)


def test_default_rewards_come_back(person: Person, lab: RewardLabScreen) -> None:
    person.choose("Default rewards")
    assert lab.rewards.weights == Config().weights
    assert lab.rewards.episode == preset("ppo").rewards.episode


def test_the_users_replays_on_the_circuit_are_scored_too(person: Person) -> None:
    folder = person.app.context.data / "replays"
    folder.mkdir(parents=True)
    save_replay(ring_run(), folder / "other.racer")
    (folder / "broken.racer").write_bytes(b"nothing")
    screen = RewardLabScreen(person.app.context, Config(), "track-01", False, lambda rewards: None)
    person.app.context.push(screen)
    person.until(lambda: screen.scored, "the scores")
    assert not any(each.kind == "person" for each in screen.drives), "it is of another circuit"


def test_suggestions_begin_with_words_that_begin_so() -> None:
    found = [each.insert for each in suggestions("2 * cur", 7)]
    assert found[0] == "curvature"
    assert "heading_error" not in found
    assert len(suggestions("", 0)) > 50


@pytest.mark.slow
def test_two_rewards_are_compared_in_two_runs_with_the_same_seed(person: Person, lab: RewardLabScreen) -> None:
    person.choose("Compare two rewards")
    assert "both rewards are the same" in person.app.context.notice
    person.choose("Add a term")
    typed(person, "smooth")
    person.press("tab")
    typed(person, "-0.001 * abs(steer_change)")
    person.press("return")
    person.choose("Compare two rewards")
    screen = person.until_top(TrainScreen)
    (other,) = screen.compared_folders
    person.until(lambda: screen.run.history.last_steps > 20_000, "the second run")
    person.until(lambda: len(screen.compared[0].steps) > 2, "the first run")
    first, second = load_run_config(other / "config.json"), screen.run.config
    assert replace(first, name="", rewards=second.rewards) == replace(second, name="")
    assert first.rewards.formulas == {}
    assert second.rewards.formulas == {"smooth": "-0.001 * abs(steer_change)"}
    person.until(lambda: "reward/smooth" in screen.run.history.values, "the metric of the term")
    assert "smooth" in [name for name, _ in content_of("reward", [screen.run.history], ORDINARY).legend]
    for folder in (other, screen.run.folder):
        RunMonitor.attach(folder).stop(discard=True)
    person.until(lambda: running_learner(other) is None and not screen.is_live, "the end of both runs")
