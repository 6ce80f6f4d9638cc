"""The supervisor of all games of a server: their latest states, who drives them, and the workers that run them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from racer_env.games.game import worker_count
from racer_env.games.worker_process import STOP_TIMEOUT, GamesError, WorkerProcess
from racer_env.games.worker_protocol import (
    NEUTRAL,
    Action,
    DrawReply,
    EpisodeEnd,
    GameSnapshot,
    SetupCommand,
    StateReply,
    StatsReply,
    TickStats,
    TickUpdate,
    WorkerMessage,
)

log = logging.getLogger("racer_env.games")

MIN_RESTART_DELAY, MAX_RESTART_DELAY = 0.1, 10.0
"""Delay before a lost worker is restarted [s]; doubles after each failed start."""
WATCH_INTERVAL = 1.0
"""Time between two checks for hung workers [s]."""


@dataclass(frozen=True)
class GamesConfig:
    """Settings of a games server.

    frames: whether clients can get frames.
    """

    game: str
    num_games: int
    hz: float
    max_steps: int
    seed: int | None
    frames: bool


class GameStatus:
    """The server's knowledge of one game.

    snapshot: state after the last tick; None if the game has not started.
    last_end, end_count: the last episode that ended, and the number of episodes that ended.
    loss_count, loss_message: how often the game was lost with its worker, and the reason of the last loss.
    client_action: latest action of a client; `human_action` overrides it while a person drives.
    driver: name of the client that set `client_action`; empty after it disconnected.
    """

    def __init__(self) -> None:
        self.snapshot: GameSnapshot | None = None
        self.last_end: EpisodeEnd | None = None
        self.end_count = self.loss_count = 0
        self.loss_message = ""
        self.client_action: Action = NEUTRAL
        self.human_action: Action | None = None
        self.driver = ""
        self.tick_stats: TickStats | None = None
        self.episode = 0

    @property
    def action(self) -> Action:
        """Action that the game applies."""
        return self.client_action if self.human_action is None else self.human_action


class GameSupervisor:
    """Starts the worker processes, restarts those that exit, and passes commands and states on.

    on_failure: called when the games cannot continue; `problem` is the reason.
    """

    def __init__(self, config: GamesConfig, on_failure: Callable[[], None] = lambda: None) -> None:
        self.config = config
        self.problem: BaseException | None = None
        self._on_failure = on_failure
        self.games = [GameStatus() for _ in range(config.num_games)]
        workers = worker_count(config.game, config.num_games, config.frames)
        self._assigned = [range(first, config.num_games, workers) for first in range(workers)]
        self._workers = [
            WorkerProcess(number, partial(self._make_setup, game_ids), self._on_message)
            for number, game_ids in enumerate(self._assigned)
        ]
        self._worker_tasks: list[asyncio.Task[None]] = []
        self._watch_task: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def tick_stats(self) -> list[TickStats]:
        """Latest statistics of the started games; games of a hung worker have a rate of 0."""
        stats = [game.tick_stats for game in self.games if game.tick_stats is not None]
        return [msgspec.structs.replace(each, rate=0.0) if self.is_hung(each.game_id) else each for each in stats]

    async def start(self) -> None:
        """Start all workers; raise GamesError if one of them cannot start."""
        results = await asyncio.gather(*(worker.start() for worker in self._workers), return_exceptions=True)
        for problem in results:
            if problem is not None:
                raise problem
        self._worker_tasks = [asyncio.create_task(self._supervise(worker)) for worker in self._workers]
        self._watch_task = asyncio.create_task(self._watch_workers())
        for task in (*self._worker_tasks, self._watch_task):
            task.add_done_callback(self._on_task_done)

    async def stop(self) -> None:
        """Stop all workers; each sends its statistics once more."""
        self._stopping = True
        if self._watch_task is not None:
            self._watch_task.cancel()
        await asyncio.gather(*(worker.stop() for worker in self._workers))
        if self._worker_tasks:
            await asyncio.wait(self._worker_tasks, timeout=STOP_TIMEOUT)
        for task in self._worker_tasks:
            task.cancel()
        await asyncio.gather(*self._worker_tasks, return_exceptions=True)
        for worker in self._workers:
            worker.kill()

    async def set_action(self, game_id: int, action: Action, driver: str) -> None:
        """Set the action of a client."""
        game = self.games[game_id]
        game.client_action, game.driver = action, driver
        if game.human_action is None:
            await self._worker_of(game_id).set_action(game_id, action)

    async def set_human_action(self, game_id: int, action: Action | None) -> None:
        """Set the action of the person at the window; None returns control to the clients."""
        game = self.games[game_id]
        game.human_action = action
        await self._worker_of(game_id).set_action(game_id, game.action)

    def remove_driver(self, driver: str) -> None:
        """Forget a client that has disconnected; its last action stays in effect."""
        for game in self.games:
            if game.driver == driver:
                game.driver = ""

    def is_hung(self, game_id: int) -> bool:
        """Return whether the game's worker is hung, so that the latest snapshot is out of date."""
        return self._worker_of(game_id).is_hung

    async def query_state(self, game_id: int, restart: bool = False, frame: bool = False) -> StateReply:
        """Return the current state of a game; start it if it has not started, or begin a new episode."""
        return await self._worker_of(game_id).query_state(game_id, restart, frame and self.config.frames)

    async def query_stats(self) -> list[TickStats]:
        """Return current tick statistics of the started games."""
        await asyncio.gather(*(worker.query_stats() for worker in self._workers))
        return self.tick_stats

    async def query_drawing(self, game_id: int, width: int, height: int) -> DrawReply:
        """Return what a window needs to draw a game in an area of this size [px]."""
        return await self._worker_of(game_id).query_drawing(game_id, width, height)

    def _worker_of(self, game_id: int) -> WorkerProcess:
        return self._workers[game_id % len(self._workers)]

    def _make_setup(self, game_ids: Sequence[int]) -> SetupCommand:
        config = self.config
        episodes = [self.games[game_id].episode for game_id in game_ids]
        return SetupCommand(
            config.game, list(game_ids), episodes, config.seed, config.hz, config.max_steps, config.frames
        )

    def _on_message(self, message: WorkerMessage) -> None:
        if isinstance(message, TickUpdate):
            game = self.games[message.snapshot.game_id]
            game.snapshot, game.episode = message.snapshot, message.snapshot.episode
            if message.ended is not None:
                game.last_end = message.ended
                game.end_count += 1
        elif isinstance(message, StatsReply):
            for stats in message.games:
                self.games[stats.game_id].tick_stats = stats

    async def _supervise(self, worker: WorkerProcess) -> None:
        """Receive the messages of a worker, and restart it whenever it exits unexpectedly."""
        while True:
            status = await worker.listen()
            if self._stopping:
                return
            lost = self._record_loss(worker, status)
            await self._restart(worker)
            for game_id in self._assigned[worker.number]:
                worker.resume(game_id, self.games[game_id].action, start=game_id in lost)

    async def _watch_workers(self) -> None:
        """Detect hung workers."""
        while True:
            await asyncio.sleep(WATCH_INTERVAL)
            for worker in self._workers:
                worker.add_silence(WATCH_INTERVAL)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """Report a background task that failed."""
        if task.cancelled() or (problem := task.exception()) is None:
            return
        log.error("the games cannot continue", exc_info=problem)
        self.problem = self.problem or problem
        self._on_failure()

    def _record_loss(self, worker: WorkerProcess, status: str) -> list[int]:
        """Record the exit of a worker; return the games that ran in it."""
        lost = [game_id for game_id in self._assigned[worker.number] if self.games[game_id].snapshot is not None]
        log.warning("worker process %d ended (%s); restarting its games: %s", worker.number, status, lost or "none ran")
        for game_id in lost:
            game = self.games[game_id]
            game.snapshot = game.tick_stats = None
            game.loss_count += 1
            game.loss_message = (
                f"game {game_id} was lost and starts again: worker process {worker.number} ended ({status})"
            )
        return lost

    async def _restart(self, worker: WorkerProcess) -> None:
        delay = MIN_RESTART_DELAY
        while True:
            await asyncio.sleep(delay)
            try:
                await worker.start()
                return
            except GamesError as error:
                delay = min(2.0 * delay, MAX_RESTART_DELAY)
                log.error("%s; the next attempt is in %g s", error, delay)
