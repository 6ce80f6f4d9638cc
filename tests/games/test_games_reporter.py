"""Every end of an episode is reported once to every client, whatever other clients do."""

from typing import Any

from racer_env.games.client_session import StateReporter
from racer_env.games.supervisor import GameStatus
from racer_env.games.worker_protocol import EpisodeEnd, GameSnapshot, StateReply


def snapshot(episode: int, total: float, reward: float = 1.0, **info: Any) -> GameSnapshot:
    return GameSnapshot(0, episode, reward, {"total_reward": total}, info)


def end(game: GameStatus, episode: int, total: float, by_reset: bool = False) -> None:
    """End an episode of a game and begin the next one."""
    game.last_end = EpisodeEnd(snapshot(episode, total, 7.0, place=1), by_reset, by_reset, "picture")
    game.end_count += 1
    game.snapshot = snapshot(episode + 1, 0.0, 0.0)


def running() -> GameStatus:
    game = GameStatus()
    game.snapshot = snapshot(1, 2.0)
    return game


def test_an_end_is_reported_once_to_each_client_with_its_last_state() -> None:
    game = running()
    one, other = StateReporter(game), StateReporter(game)
    assert one.take_end() is None
    end(game, 1, 9.0)
    for reporter in (one, other):
        state = reporter.take_end()
        assert state is not None
        assert (state.done, state.truncated, state.ended) == (True, False, 1)
        assert (state.reward, state.info, state.frame) == (7.0, {"place": 1}, "picture")
        assert reporter.take_end() is None
        assert game.snapshot is not None
        assert not reporter.current(game.snapshot, None).done


def test_of_several_ends_the_last_is_reported_with_their_number() -> None:
    game = running()
    reporter = StateReporter(game)
    for episode in (1, 2, 3):
        end(game, episode, 9.0)
    state = reporter.take_end()
    assert state is not None
    assert (state.ended, state.episode) == (3, 3)
    assert reporter.take_end() is None


def test_a_new_client_gets_no_earlier_ends_or_losses() -> None:
    game = running()
    end(game, 1, 9.0)
    game.loss_count = 1
    reporter = StateReporter(game)
    assert reporter.take_end() is None
    assert reporter.take_loss() is None


def test_rewards_are_summed_from_one_state_to_the_next_within_an_episode() -> None:
    game = running()
    reporter = StateReporter(game)
    sums = [reporter.current(snapshot(1, total), None).reward_since for total in (2.0, 2.5, 4.0)]
    assert sums == [2.0, 0.5, 1.5]
    end(game, 1, 10.0)
    state = reporter.take_end()
    assert state is not None
    assert state.reward_since == 6.0
    assert reporter.current(snapshot(2, 3.0), None).reward_since == 3.0


def test_a_reset_is_an_end_for_all_clients_but_its_sender() -> None:
    game = running()
    one, other = StateReporter(game), StateReporter(game)
    end(game, 1, 9.0, by_reset=True)
    state = one.after_reset(StateReply(0, snapshot(2, 0.0, 0.0), "frame", interrupted=True))
    assert (state.done, state.ended, state.reward_since, state.frame) == (False, 0, 0.0, "frame")
    assert one.take_end() is None
    reported = other.take_end()
    assert reported is not None
    assert (reported.done, reported.truncated, reported.info) == (True, True, {"place": 1, "reset": True})


def test_ends_before_a_reset_are_counted() -> None:
    game = running()
    reporter = StateReporter(game)
    end(game, 1, 9.0)
    end(game, 2, 9.0, by_reset=True)
    state = reporter.after_reset(StateReply(0, snapshot(3, 0.0, 0.0), None, interrupted=True))
    assert (state.done, state.ended) == (False, 1)
    assert reporter.take_end() is None


def test_an_episode_that_ends_before_its_reset_is_answered_is_reported_next() -> None:
    game = running()
    reporter = StateReporter(game)
    end(game, 1, 9.0, by_reset=True)
    end(game, 2, 5.0)
    state = reporter.after_reset(StateReply(0, snapshot(2, 0.0, 0.0), None, interrupted=True))
    assert (state.done, state.ended) == (False, 0)
    following = reporter.take_end()
    assert following is not None
    assert (following.done, following.ended, following.episode) == (True, 1, 2)


def test_several_ends_around_a_reset_are_counted_separately() -> None:
    game = running()
    reporter = StateReporter(game)
    end(game, 1, 9.0)
    end(game, 2, 9.0, by_reset=True)
    for episode in (3, 4, 5):
        end(game, episode, 5.0)
    state = reporter.after_reset(StateReply(0, snapshot(3, 0.0, 0.0), None, interrupted=True))
    assert (state.done, state.ended) == (False, 1)
    following = reporter.take_end()
    assert following is not None
    assert (following.ended, following.episode) == (3, 5)


def test_an_end_has_no_frame_if_none_is_wanted() -> None:
    game = running()
    reporter = StateReporter(game)
    end(game, 1, 9.0)
    state = reporter.take_end(frame=False)
    assert state is not None
    assert state.frame is None


def test_an_end_before_a_loss_is_reported_after_it() -> None:
    game = running()
    reporter = StateReporter(game)
    assert reporter.current(snapshot(1, 2.0), None).reward_since == 2.0
    end(game, 1, 9.0)
    game.loss_count, game.loss_message = 1, "the reason"
    assert reporter.take_loss() == "the reason"
    state = reporter.take_end()
    assert state is not None
    assert (state.done, state.ended, state.reward_since) == (True, 1, 7.0)


def test_a_loss_is_reported_once() -> None:
    game = running()
    reporter = StateReporter(game)
    game.loss_count, game.loss_message = 1, "the reason"
    assert reporter.take_loss() == "the reason"
    assert reporter.take_loss() is None


def test_a_person_at_the_wheel_is_reported() -> None:
    game = running()
    reporter = StateReporter(game)
    assert not reporter.current(snapshot(1, 1.0), None).human
    game.human_action = (0.0, 1.0, 0.0)
    assert reporter.current(snapshot(1, 1.0), None).human
