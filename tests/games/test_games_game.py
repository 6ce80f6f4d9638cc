"""A game: the latest action in every tick, episodes that start again, ends that are kept."""

from typing import Any

from racer_env.games.game import Game, Outcome, Sight
from racer_env.games.worker_protocol import Action


class Corridor:
    """Each tick is worth the gas; the end is 5 ahead."""

    def __init__(self) -> None:
        self.place, self.starts, self.drawn = 0.0, 0, 0
        self.actions: list[Action] = []

    def restart(self) -> None:
        self.place = 0.0
        self.starts += 1

    def tick(self, action: Action) -> Outcome:
        self.actions.append(action)
        self.place += action[1]
        return Outcome(action[1], terminated=self.place >= 5.0, info={"place": self.place})

    def telemetry(self) -> dict[str, Any]:
        return {"place": self.place}

    def frame(self) -> bytes:
        self.drawn += 1
        return bytes([round(self.place)])

    def sight(self, width: int, height: int) -> Sight:
        return Sight("pixels", width, height, b"")


def started(max_steps: int = 100, frames: bool = True) -> tuple[Game, Corridor]:
    corridor = Corridor()
    game = Game(2, corridor, max_steps, frames)
    assert game.restart() is None
    return game, corridor


def test_the_latest_action_is_applied_in_every_tick_and_stays_through_restarts() -> None:
    game, corridor = started()
    game.tick()
    game.action = (0.5, 1.0, 0.0)
    for _ in range(6):
        game.tick()
    assert corridor.actions == [(0.0, 0.0, 0.0), *[(0.5, 1.0, 0.0)] * 6]
    assert corridor.starts == 2


def test_an_episode_that_ends_is_kept_and_the_next_one_begins() -> None:
    game, _ = started()
    game.action = (0.0, 1.0, 0.0)
    endings = [game.tick() for _ in range(5)]
    assert endings[:4] == [None] * 4
    end = endings[4]
    assert end is not None
    assert not end.truncated
    assert not end.by_reset
    assert end.frame == "BQ=="
    assert end.moment.telemetry == {"place": 5.0, "steps": 5, "total_reward": 5.0}
    assert (end.moment.episode, end.moment.reward, end.moment.info) == (1, 1.0, {"place": 5.0})
    now = game.moment()
    assert now.telemetry == {"place": 0.0, "steps": 0, "total_reward": 0.0}
    assert (now.game_id, now.episode, now.reward, now.info) == (2, 2, 0.0, {})


def test_an_episode_of_full_length_is_truncated() -> None:
    game, _ = started(max_steps=3)
    assert [game.tick(), game.tick()] == [None, None]
    end = game.tick()
    assert end is not None
    assert end.truncated


def test_a_restart_breaks_an_episode_off_only_if_it_had_begun_to_move() -> None:
    game, _ = started()
    assert game.restart() is None
    game.tick()
    end = game.restart()
    assert end is not None
    assert end.truncated
    assert end.by_reset
    assert end.moment.episode == 2
    assert game.moment().episode == 3


def test_a_frame_is_drawn_once_in_a_tick_and_not_at_all_if_nobody_may_ask() -> None:
    game, corridor = started()
    assert game.frame() == game.frame() == "AA=="
    game.action = (0.0, 2.0, 0.0)
    game.tick()
    assert game.frame() == "Ag=="
    assert corridor.drawn == 2
    game, corridor = started(max_steps=1, frames=False)
    end = game.tick()
    assert end is not None
    assert end.frame is None
    assert corridor.drawn == 0
