"""Watching, through the real app: time, episodes, the wheel, circuits, several cars."""

from dataclasses import replace

import numpy as np
import pytest

from racer_viewer.agents import AgentError, bundled_models
from racer_viewer.modes.episodes import EpisodesScreen
from racer_viewer.modes.race import SetEntrant
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.watch import WatchMenu, WatchScreen, open_watch
from racer_viewer.replays import Replay, load_replay, trace_replay
from racer_viewer.ui.intents import Scroll
from tests.modes.person import Person

MODELS = {path.stem: path for path in bundled_models()}


def watching(person: Person, *models: str, circuit: str = "track-01") -> WatchScreen:
    open_watch(person.app.context, [MODELS[name] for name in models or ("champion",)], circuit)
    return person.top(WatchScreen)


def ticks_in(person: Person, screen: WatchScreen, frames: int) -> int:
    """Return the simulation ticks during so many frames of the window."""
    before = int(screen.view.after.car["step_count"])
    person.ticks(frames)
    return int(screen.view.after.car["step_count"]) - before


def is_reproduced(replay: Replay) -> bool:
    """Re-simulate a replay and compare laps and reward exactly."""
    trace = trace_replay(replay)
    return tuple(lap.ticks for lap in trace.laps) == replay.laps and trace.reward == replay.reward


def test_time_can_be_paused_stepped_and_resumed(person: Person) -> None:
    screen = watching(person)
    assert ticks_in(person, screen, 30) == 30
    person.press("space")
    assert ticks_in(person, screen, 10) == 0
    person.press(".")
    assert ticks_in(person, screen, 10) == 0, "the tick came with the key"
    at = int(screen.view.after.car["step_count"])
    person.press(".", ".", ".")
    assert int(screen.view.after.car["step_count"]) == at + 3
    assert screen.view.frame(0.3).share == 1.0, "what stands is shown as it is"
    person.press("p")
    assert ticks_in(person, screen, 5) == 5


LONG_BUDGET = 60.0
"""Time budget for the ticks of one frame that a busy machine does not exceed [s]."""


@pytest.mark.parametrize(("presses", "frames", "ticks"), [(-2, 60, 15), (-1, 60, 30), (1, 60, 120), (2, 30, 120)])
def test_time_goes_at_a_quarter_to_sixteen_times_its_speed(
    person: Person, presses: int, frames: int, ticks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("racer_viewer.modes.race_view.TIME_BUDGET", LONG_BUDGET)
    screen = watching(person)
    person.press(*["-" if presses < 0 else "="] * abs(presses))
    person.frames(4)
    assert abs(ticks_in(person, screen, frames) - ticks) <= 1


def test_the_speed_reached_is_shown_if_it_is_below_sixteen_times(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("racer_viewer.modes.race_view.TIME_BUDGET", LONG_BUDGET)
    screen = watching(person)
    person.press(*["="] * 9)
    assert screen.playback.name == "16×"
    assert ticks_in(person, screen, 30) == 480
    monkeypatch.setattr("racer_viewer.modes.race_view.TIME_BUDGET", 0.0)
    person.until(lambda: screen.status()[1][0] == "16× (here about 1.0×)", "the speed that was reached")


def test_slow_motion_shows_what_lies_between_two_ticks(person: Person) -> None:
    screen = watching(person)
    person.ticks(100)
    person.press("-", "-")
    places = []
    for _ in range(8):
        person.frames()
        frame = screen.view.frame(0.0)
        before, after = (float(snapshot.car["x"]) for snapshot in (frame.before, frame.after))
        places.append(before + (after - before) * frame.share)
    steps = np.diff(places)
    assert np.all(steps != 0.0)
    assert np.allclose(steps, steps.mean(), rtol=0.2)


def test_an_episode_ends_by_itself_and_the_next_one_begins(person: Person) -> None:
    screen = watching(person)
    person.press(*["="] * 4)
    while screen.number == 1:
        person.ticks(15)
    (episode,) = screen.episodes
    assert (episode.number, episode.driver, episode.ending) == (1, "champion", "time up")
    assert (episode.laps, episode.best) == (7, 399), "as models/README.md has it"
    assert episode.replay is not None
    assert episode.replay.ticks == 3000
    assert abs(episode.reward - episode.replay.reward) < 1e-9
    person.frames(2)
    assert int(screen.view.after.car["step_count"]) <= 16 * (15 + 2), (
        "of the ticks since then, at sixteen times the speed"
    )


def test_a_car_that_stands_still_ends_its_episode(person: Person) -> None:
    screen = watching(person)
    person.frames(5)
    person.press("t", "=", "=")
    while screen.number == 1:
        person.ticks(15)
    assert [episode.ending for episode in screen.episodes] == ["standstill"]
    assert not screen.at_wheel, "the next episode is the agent's"


def test_an_episode_can_be_skipped(person: Person) -> None:
    screen = watching(person)
    person.ticks(50)
    person.press("n")
    person.frames(3)
    assert [(episode.number, episode.ending, episode.laps) for episode in screen.episodes] == [(1, "skipped", 0)]
    assert screen.number == 2
    assert int(screen.view.after.car["step_count"]) < 10


def test_the_user_takes_the_wheel_and_the_agent_drives_on_from_there(person: Person) -> None:
    screen = watching(person)
    person.ticks(120)
    person.press("t")
    assert screen.at_wheel
    speed = float(screen.view.after.car["speed"])
    person.hold("down")
    person.ticks(30)
    assert float(screen.view.after.car["speed"]) < speed - 20.0, "the brake is the person's"
    assert screen.view.after.car["action"].tolist() == [0.0, 0.0, 1.0]
    person.release("down")
    left_at = float(screen.view.after.car["x"]), float(screen.view.after.car["y"])
    person.press("t")
    assert not screen.at_wheel
    person.frames(1)
    here = float(screen.view.after.car["x"]), float(screen.view.after.car["y"])
    assert np.hypot(here[0] - left_at[0], here[1] - left_at[1]) < 10.0, "it goes on from there"
    person.press("=", "=")
    while not screen.live.tick.laps:
        person.ticks(15)
        assert screen.number == 1
    replay = screen.live.tick.followed.replay()
    assert replay is not None
    assert is_reproduced(replay)


def test_stochastic_actions_vary_and_deterministic_ones_do_not(person: Person) -> None:
    screen = watching(person)

    def driven() -> np.ndarray:
        person.press("n")
        person.ticks(120)
        replay = screen.live.tick.followed.replay()
        assert replay is not None
        assert is_reproduced(replay)
        return replay.actions[:100]

    first, second = driven(), driven()
    assert np.array_equal(first, second)
    person.press("v")
    assert ("stochastic", person.app.context.theme.palette.faint) in screen.status()
    third, fourth = driven(), driven()
    assert not np.allclose(first, third)
    assert not np.allclose(third, fourth)


def test_a_paused_drive_that_is_saved_twice_is_one_file(person: Person) -> None:
    watching(person)
    person.ticks(60)
    person.press("space", "k", "k")
    assert "Already saved as" in person.app.context.notice
    assert len(list((person.data / "replays").glob("*.racer"))) == 1


def test_episodes_can_begin_anywhere(person: Person) -> None:
    screen = watching(person)
    person.press("escape")
    person.go_to("Start anywhere")
    person.press("right", "escape")
    starts = []
    for _ in range(3):
        person.press("n")
        person.ticks(30)
        replay = screen.live.tick.followed.replay()
        assert replay is not None
        assert is_reproduced(replay)
        starts.append(float(trace_replay(replay).rows["arc"][0]))
    assert len(set(starts)) == 3


def test_the_circuit_is_switched_while_it_runs(person: Person) -> None:
    screen = watching(person)
    person.ticks(60)
    person.press("page down")
    person.ticks(30)
    circuit = screen.view.after.track.circuit
    assert circuit is not None
    assert circuit.id == "track-02"
    assert screen.episodes[-1].ending == "left"
    person.press("page up", "page up")
    person.frames(2)
    assert screen.setup.circuit == "track-06"
    person.press("escape")
    person.top(WatchMenu)
    person.go_to("Circuit")
    person.press("right", "escape")
    person.frames(2)
    assert person.top(WatchScreen).setup.circuit == "track-01"


def test_several_models_race_and_each_can_be_followed(person: Person) -> None:
    screen = watching(person, "champion", "learning-3-slow", "sac-track-01")
    person.ticks(200)
    names = [style.name for style in screen.view.after.styles]
    assert names == ["champion", "learning-3-slow", "sac-track-01"]
    assert len(screen.view.after.gaps) == 3
    insight = screen.view.after.insight
    assert insight is not None
    assert insight.value is not None
    person.press("tab", "tab")
    person.frames(2)
    assert screen.view.after.focus == 2
    insight = screen.view.after.insight
    assert insight is not None
    assert insight.value is None, "SAC has no value function"
    assert screen.status()[0][0] == "sac-track-01 drives"
    person.press("tab")
    person.frames(2)
    assert screen.view.after.focus == 0


def test_a_further_model_joins(person: Person) -> None:
    screen = watching(person)
    person.ticks(20)
    screen.join(MODELS["sac-track-01"])
    person.frames(2)
    assert [style.name for style in screen.view.after.styles] == ["champion", "sac-track-01"]
    screen.join(person.data / "none.zip")
    assert "none.zip" in person.top(MessageScreen).text


def test_a_model_that_cannot_be_loaded_gives_its_reason_on_screen(person: Person) -> None:
    damaged = person.data / "damaged.zip"
    damaged.write_bytes(MODELS["champion"].read_bytes()[:5000])
    open_watch(person.app.context, [damaged], "track-01")
    message = person.top(MessageScreen)
    assert str(damaged) in message.text
    person.frames(2)


def test_a_saved_episode_is_reproduced(person: Person) -> None:
    screen = watching(person, "learning-2-first-lap")
    person.ticks(200)
    person.press("space", "k")
    (path,) = (person.data / "replays").glob("*.racer")
    replay = load_replay(path)
    assert replay.driver == "learning-2-first-lap"
    assert replay.ticks == int(screen.view.after.car["step_count"])
    assert is_reproduced(replay)


def test_every_episode_is_listed_and_can_be_watched_again_and_saved(person: Person) -> None:
    watching(person, "champion", "sac-track-01")
    person.ticks(30)
    person.press("n")
    person.ticks(30)
    person.press("escape")
    person.choose("Episodes")
    screen = person.top(EpisodesScreen)
    assert [item.label for item in screen.list.items] == ["sac-track-01", "champion"] * 2
    person.press("down", "down", "k")
    (path,) = (person.data / "replays").glob("*.racer")
    assert load_replay(path).driver == "sac-track-01"
    person.press("return")
    person.top(ReplayScreen)
    person.press("escape")
    person.top(EpisodesScreen)


def test_what_watching_shows_can_be_hidden_and_stays_so(person: Person) -> None:
    watching(person)
    person.ticks(40)
    with_table = person.picture().copy()
    person.press("e", "space")
    assert "episodes" not in person.app.context.settings.overlays
    middle = (640, 60)
    assert person.picture().get_at(middle) != with_table.get_at(middle)


def test_replays_saved_in_the_same_second_do_not_replace_each_other(person: Person) -> None:
    watching(person)
    person.ticks(30)
    person.press("space", "k", ".", "k", ".", "k")
    assert len(list((person.data / "replays").glob("*.racer"))) == 3


def test_all_cars_that_drive_are_in_the_table(person: Person) -> None:
    screen = watching(person, *MODELS)
    person.ticks(60)
    assert len(screen.running) == 8
    assert list(screen.table.drivers) == [entrant.name for entrant in screen.setup.entrants]


def test_a_model_that_fails_while_it_drives_is_reported(person: Person) -> None:
    screen = watching(person)
    person.ticks(10)

    class Broken:
        noise_shape = None

        def act(self, *arguments: object, **options: object) -> None:
            raise AgentError("the model fails while it drives")

    broken = replace(screen.setup.entrants[0], agent=Broken())  # type: ignore[arg-type]
    screen.live.drive.send(SetEntrant(0, broken))
    person.frames(2)
    message = person.top(MessageScreen)
    assert (message.title, message.text) == ("The race cannot continue", "the model fails while it drives")
    person.press("escape")
    assert person.app.context.top is not screen


def test_the_free_camera_can_be_zoomed_at_every_size_of_the_window(person: Person) -> None:
    screen = watching(person)
    person.press("c", "c", "c")
    for steps in [1] * 14 + [-1] * 30 + [1] * 20:
        screen.handle(Scroll(float(steps), 700, 300))
        person.frames(2)
