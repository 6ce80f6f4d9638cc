"""All games of a server: what each looks like now, who drives it, and the workers that play them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from racer_env.games.kinds import worker_count
from racer_env.games.worker_process import END_SECONDS, GamesError, WorkerProcess
from racer_env.games.worker_protocol import (
    REST,
    Action,
    Answer,
    ClockReport,
    Counted,
    Ending,
    FromWorker,
    Moment,
    Seen,
    Setup,
    Ticked,
)

log = logging.getLogger("racer_env.games")

FIRST_DELAY, LONGEST_DELAY = 0.1, 10.0
"""Before a lost worker is started again; twice as long after each that does not even start [s]."""
WATCH_SECONDS = 1.0
"""Between two looks at which workers are silent."""


@dataclass(frozen=True)
class Plan:
    """What a server plays. frames: whether pictures are sent."""

    game: str
    num_games: int
    hz: float
    max_steps: int
    seed: int | None
    frames: bool


class GameView:
    """What the server knows of a game.

    moment: as of the last tick; None if it has not started.
    ending: of the last episode that ended; `endings` counts them.
    losses: how many times the game was lost with its worker; `loss` says how, the last time.
    action: the latest of a client; a person at the wheel goes before it.
    driver: who has sent that action, if it is still there.
    """

    def __init__(self) -> None:
        self.moment: Moment | None = None
        self.ending: Ending | None = None
        self.endings = self.losses = 0
        self.loss = ""
        self.action: Action = REST
        self.by_person: Action | None = None
        self.driver = ""
        self.clock: ClockReport | None = None
        self.episode = 0


class Arcade:
    """The games and the processes that they run in.

    failed: told when the games cannot go on; then `problem` is why.
    """

    def __init__(self, plan: Plan, failed: Callable[[], None] = lambda: None) -> None:
        self.plan = plan
        self.problem: BaseException | None = None
        self._failed = failed
        self.views = [GameView() for _ in range(plan.num_games)]
        workers = worker_count(plan.game, plan.num_games, plan.frames)
        self._shares = [range(first, plan.num_games, workers) for first in range(workers)]
        self._workers = [
            WorkerProcess(number, partial(self._setup, share), self._hear) for number, share in enumerate(self._shares)
        ]
        self._keepers: list[asyncio.Task[None]] = []
        self._watch: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def clocks(self) -> list[ClockReport]:
        """Of the games that have started, as of the last second; those of a worker that hangs do not tick."""
        clocks = [view.clock for view in self.views if view.clock is not None]
        return [msgspec.structs.replace(clock, rate=0.0) if self.hangs(clock.game_id) else clock for clock in clocks]

    async def open(self) -> None:
        """Start all workers; raises GamesError if one cannot be."""
        results = await asyncio.gather(*(worker.start() for worker in self._workers), return_exceptions=True)
        for problem in results:
            if problem is not None:
                raise problem
        self._keepers = [asyncio.create_task(self._keep(worker)) for worker in self._workers]
        self._watch = asyncio.create_task(self._watch_on())
        for task in (*self._keepers, self._watch):
            task.add_done_callback(self._note_end)

    async def close(self) -> None:
        """End all workers; each reports once more before."""
        self._closing = True
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.gather(*(worker.end() for worker in self._workers))
        if self._keepers:
            await asyncio.wait(self._keepers, timeout=END_SECONDS)
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        for worker in self._workers:
            worker.kill()

    async def act(self, game_id: int, action: Action, driver: str) -> None:
        """The latest action of a client."""
        view = self.views[game_id]
        view.action, view.driver = action, driver
        if view.by_person is None:
            await self._worker_of(game_id).act(game_id, action)

    async def take_wheel(self, game_id: int, action: Action | None) -> None:
        """A person drives like this from now on; None hands the wheel back to the clients."""
        self.views[game_id].by_person = action
        await self._worker_of(game_id).act(game_id, self._action_of(game_id))

    def leave(self, driver: str) -> None:
        """A client has gone. What it set last stays."""
        for view in self.views:
            if view.driver == driver:
                view.driver = ""

    def hangs(self, game_id: int) -> bool:
        """Whether nothing has been heard of a game for seconds, so that what is known of it is out of date."""
        return self._worker_of(game_id).is_silent

    async def ask(self, game_id: int, restart: bool = False, frame: bool = False) -> Answer:
        """How a game is at this moment; started if it was not, or anew."""
        return await self._worker_of(game_id).ask(game_id, restart, frame and self.plan.frames)

    async def count(self) -> list[ClockReport]:
        """How steadily the games tick that have started, as of now."""
        await asyncio.gather(*(worker.count() for worker in self._workers))
        return self.clocks

    async def look(self, game_id: int, width: int, height: int) -> Seen:
        """What there is to see of a game in a window with so many pixels."""
        return await self._worker_of(game_id).look(game_id, width, height)

    def _action_of(self, game_id: int) -> Action:
        view = self.views[game_id]
        return view.action if view.by_person is None else view.by_person

    def _worker_of(self, game_id: int) -> WorkerProcess:
        return self._workers[game_id % len(self._workers)]

    def _setup(self, share: Sequence[int]) -> Setup:
        """The first message to the next process that plays these games."""
        plan = self.plan
        episodes = [self.views[game_id].episode for game_id in share]
        return Setup(plan.game, list(share), episodes, plan.seed, plan.hz, plan.max_steps, plan.frames)

    def _hear(self, message: FromWorker) -> None:
        if isinstance(message, Ticked):
            view = self.views[message.moment.game_id]
            view.moment, view.episode = message.moment, message.moment.episode
            if message.ending is not None:
                view.ending = message.ending
                view.endings += 1
        elif isinstance(message, Counted):
            for clock in message.clocks:
                self.views[clock.game_id].clock = clock

    async def _keep(self, worker: WorkerProcess) -> None:
        """Listen to a worker as long as it lives, and start it again if it ends by itself."""
        while True:
            how = await worker.listen()
            if self._closing:
                return
            lost = self._note_loss(worker, how)
            await self._start_again(worker)
            for game_id in self._shares[worker.number]:
                worker.resume(game_id, self._action_of(game_id), start=game_id in lost)

    async def _watch_on(self) -> None:
        """Notice which workers hang."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for worker in self._workers:
                worker.grow_silent(WATCH_SECONDS)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """Of a task that goes on as long as the games do, unless something is wrong with it."""
        if task.cancelled() or (problem := task.exception()) is None:
            return
        log.error("the games cannot go on", exc_info=problem)
        self.problem = self.problem or problem
        self._failed()

    def _note_loss(self, worker: WorkerProcess, how: str) -> list[int]:
        """The games that ran in it."""
        lost = [game_id for game_id in self._shares[worker.number] if self.views[game_id].moment is not None]
        log.warning("worker process %d ended (%s); its games start again: %s", worker.number, how, lost or "none ran")
        for game_id in lost:
            view = self.views[game_id]
            view.moment = view.clock = None
            view.losses += 1
            view.loss = f"game {game_id} was lost and starts again: worker process {worker.number} ended ({how})"
        return lost

    async def _start_again(self, worker: WorkerProcess) -> None:
        delay = FIRST_DELAY
        while True:
            await asyncio.sleep(delay)
            try:
                await worker.start()
                return
            except GamesError as error:
                delay = min(2.0 * delay, LONGEST_DELAY)
                log.error("%s; the next attempt is in %g s", error, delay)
