"""What one client has been told of one game, so that it hears of every end once, and of every loss."""

from __future__ import annotations

from racer_env.games.arcade import GameView
from racer_env.games.link import Answer
from racer_env.games.messages import State
from racer_env.games.moments import Ending, Moment


class Told:
    """A client's knowledge of a game begins when it connects."""

    def __init__(self, view: GameView) -> None:
        self._view = view
        self._endings, self._losses = view.endings, view.losses
        self._episode, self._total = 0, 0.0
        """The last episode that it was told of, and the sum of its rewards by then."""

    def loss(self) -> str | None:
        """How the game was lost since the client last heard of it; None if it was not. Told once."""
        if self._losses == self._view.losses:
            return None
        self._losses, self._endings = self._view.losses, self._view.endings
        self._episode, self._total = 0, 0.0
        return self._view.loss

    def ending(self) -> State | None:
        """The state that says that an episode has ended, if the client does not know yet. Told once.

        Of several that ended since, the last is told, and their number.
        """
        view = self._view
        if view.endings == self._endings or view.ending is None:
            return None
        return self._of_ending(view.ending, self._count())

    def now(self, moment: Moment, frame: str | None) -> State:
        """How the game is; no episode has ended since the client last heard of it."""
        return State(moment, frame, False, False, self._since(moment), 0, self._human, moment.info)

    def restarted(self, answer: Answer) -> State:
        """The state after the client's own RESET. Ends before it are counted, not told: it has begun anew."""
        view, self._losses = self._view, self._view.losses
        ended = self._count() - answer.broke_off
        if view.ending is not None and view.ending.moment.episode >= answer.moment.episode:
            ended, self._endings = ended - 1, view.endings - 1  # the new episode has ended already: to be told next
        self._episode, self._total = answer.moment.episode, 0.0
        return State(answer.moment, answer.frame, False, False, 0.0, max(0, ended), self._human, answer.moment.info)

    def _of_ending(self, ending: Ending, count: int) -> State:
        moment = ending.moment
        info = {**moment.info, "reset": True} if ending.by_reset else moment.info
        since = self._since(moment)
        return State(moment, ending.frame, True, ending.truncated, since, count, self._human, info)

    def _count(self) -> int:
        ended = self._view.endings - self._endings
        self._endings = self._view.endings
        return ended

    def _since(self, moment: Moment) -> float:
        """Rewards since the client last heard of this game; of this episode only."""
        before = self._total if moment.episode == self._episode else 0.0
        self._episode, self._total = moment.episode, moment.total_reward
        return moment.total_reward - before

    @property
    def _human(self) -> bool:
        return self._view.by_person is not None
