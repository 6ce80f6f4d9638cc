"""Every client hears of every end once, whatever other clients were told and did."""

from typing import Any

from racer_env.games.client_session import Told
from racer_env.games.supervisor import GameView
from racer_env.games.worker_protocol import Answer, Ending, Moment


def moment(episode: int, total: float, reward: float = 1.0, **info: Any) -> Moment:
    return Moment(0, episode, reward, {"total_reward": total}, info)


def end(view: GameView, episode: int, total: float, by_reset: bool = False) -> None:
    """An episode ends in a game, and the next one begins."""
    view.ending = Ending(moment(episode, total, 7.0, place=1), by_reset, by_reset, "picture")
    view.endings += 1
    view.moment = moment(episode + 1, 0.0, 0.0)


def running() -> GameView:
    view = GameView()
    view.moment = moment(1, 2.0)
    return view


def test_the_end_is_told_once_to_each_with_all_that_belongs_to_it() -> None:
    view = running()
    one, other = Told(view), Told(view)
    assert one.ending() is None
    end(view, 1, 9.0)
    for told in (one, other):
        state = told.ending()
        assert state is not None
        assert (state.done, state.truncated, state.ended) == (True, False, 1)
        assert (state.moment.reward, state.info, state.frame) == (7.0, {"place": 1}, "picture")
        assert told.ending() is None
        assert view.moment is not None
        assert not told.now(view.moment, None).done


def test_of_several_ends_the_last_is_told_and_their_number() -> None:
    view = running()
    told = Told(view)
    for episode in (1, 2, 3):
        end(view, episode, 9.0)
    state = told.ending()
    assert state is not None
    assert (state.ended, state.moment.episode) == (3, 3)
    assert told.ending() is None


def test_who_comes_later_hears_nothing_of_the_past() -> None:
    view = running()
    end(view, 1, 9.0)
    view.losses = 1
    told = Told(view)
    assert told.ending() is None
    assert told.loss() is None


def test_rewards_are_summed_from_one_state_to_the_next_within_an_episode() -> None:
    view = running()
    told = Told(view)
    sums = [told.now(moment(1, total), None).reward_since for total in (2.0, 2.5, 4.0)]
    assert sums == [2.0, 0.5, 1.5]
    end(view, 1, 10.0)
    state = told.ending()
    assert state is not None
    assert state.reward_since == 6.0
    assert told.now(moment(2, 3.0), None).reward_since == 3.0


def test_a_clients_own_reset_is_no_end_to_itself_but_to_the_others() -> None:
    view = running()
    one, other = Told(view), Told(view)
    end(view, 1, 9.0, by_reset=True)
    state = one.restarted(Answer(0, moment(2, 0.0, 0.0), "frame", broke_off=True))
    assert (state.done, state.ended, state.reward_since, state.frame) == (False, 0, 0.0, "frame")
    assert one.ending() is None
    seen = other.ending()
    assert seen is not None
    assert (seen.done, seen.truncated, seen.info) == (True, True, {"place": 1, "reset": True})


def test_ends_before_a_reset_are_counted() -> None:
    view = running()
    told = Told(view)
    end(view, 1, 9.0)
    end(view, 2, 9.0, by_reset=True)
    state = told.restarted(Answer(0, moment(3, 0.0, 0.0), None, broke_off=True))
    assert (state.done, state.ended) == (False, 1)
    assert told.ending() is None


def test_an_episode_that_ends_before_its_reset_was_answered_is_told_next() -> None:
    view = running()
    told = Told(view)
    end(view, 1, 9.0, by_reset=True)
    end(view, 2, 5.0)
    state = told.restarted(Answer(0, moment(2, 0.0, 0.0), None, broke_off=True))
    assert (state.done, state.ended) == (False, 0)
    following = told.ending()
    assert following is not None
    assert (following.done, following.ended, following.moment.episode) == (True, 1, 2)


def test_of_several_that_end_before_a_reset_was_answered_each_is_counted_where_it_belongs() -> None:
    view = running()
    told = Told(view)
    end(view, 1, 9.0)
    end(view, 2, 9.0, by_reset=True)
    for episode in (3, 4, 5):
        end(view, episode, 5.0)
    state = told.restarted(Answer(0, moment(3, 0.0, 0.0), None, broke_off=True))
    assert (state.done, state.ended) == (False, 1)
    following = told.ending()
    assert following is not None
    assert (following.ended, following.moment.episode) == (3, 5)


def test_an_end_without_a_picture_for_who_wants_none() -> None:
    view = running()
    told = Told(view)
    end(view, 1, 9.0)
    state = told.ending(frame=False)
    assert state is not None
    assert state.frame is None


def test_an_end_before_a_loss_is_told_after_it() -> None:
    view = running()
    told = Told(view)
    assert told.now(moment(1, 2.0), None).reward_since == 2.0
    end(view, 1, 9.0)
    view.losses, view.loss = 1, "how it was"
    assert told.loss() == "how it was"
    state = told.ending()
    assert state is not None
    assert (state.done, state.ended, state.reward_since) == (True, 1, 7.0)


def test_a_lost_game_is_told_once() -> None:
    view = running()
    told = Told(view)
    view.losses, view.loss = 1, "how it was"
    assert told.loss() == "how it was"
    assert told.loss() is None


def test_a_person_at_the_wheel_is_told() -> None:
    view = running()
    told = Told(view)
    assert not told.now(moment(1, 1.0), None).human
    view.by_person = (0.0, 1.0, 0.0)
    assert told.now(moment(1, 1.0), None).human
