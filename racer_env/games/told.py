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
        """How the game was lost since the client last heard of it; None if it was not. Told once.

        An end before that is still to be told.
        """
        if self._losses == self._view.losses:
            return None
        self._losses = self._view.losses
        return self._view.loss

    @property
    def has_ending(self) -> bool:
        """Whether an episode has ended and the client does not know yet."""
        return self._view.endings != self._endings and self._view.ending is not None

    def ending(self, frame: bool = True) -> State | None:
        """The state that says that an episode has ended, if the client does not know yet. Told once.

        Of several that ended since, the last is told, and their number. frame: whether a picture is wanted.
        """
        ending = self._view.ending
        if not self.has_ending or ending is None:
            return None
        return self._of_ending(ending, self._count(), ending.frame if frame else None)

    def now(self, moment: Moment, frame: str | None) -> State:
        """How the game is; no episode has ended since the client last heard of it."""
        return State(moment, frame, False, False, self._since(moment), 0, self._human, moment.info)

    def restarted(self, answer: Answer) -> State:
        """The state after the client's own RESET. Ends before it are counted, not told: it has begun anew."""
        view, self._losses = self._view, self._view.losses
        last = view.ending.moment.episode if view.ending is not None else 0
        since = max(0, last - answer.moment.episode + 1)  # new ones that have ended already: to be told next
        ended = self._count() - since - answer.broke_off
        self._endings -= since
        self._episode, self._total = answer.moment.episode, 0.0
        return State(answer.moment, answer.frame, False, False, 0.0, max(0, ended), self._human, answer.moment.info)

    def _of_ending(self, ending: Ending, count: int, frame: str | None) -> State:
        moment = ending.moment
        info = {**moment.info, "reset": True} if ending.by_reset else moment.info
        since = self._since(moment)
        return State(moment, frame, True, ending.truncated, since, count, self._human, info)

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
