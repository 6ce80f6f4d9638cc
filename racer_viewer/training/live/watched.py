"""A run as a window sees it: its story so far, its cars now, its policies, and orders to it."""

from __future__ import annotations

import queue
import shutil
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

from racer_env.engine import parse_config
from racer_viewer.agents import Agent, AgentError
from racer_viewer.curves import Curves, Event, Swarm
from racer_viewer.training.config import RunConfig, load_run_config
from racer_viewer.training.live import orders
from racer_viewer.training.live.files import FINISHED
from racer_viewer.training.live.greeting import (
    CONNECTION_ERRORS,
    Address,
    Message,
    call,
    check_nobody_learns,
    read_address,
    receive,
    running_learner,
    send,
)
from racer_viewer.training.live.policies import load_policy
from racer_viewer.training.live.process import USAGE_ERROR, Learner, explain_end, start_learner
from racer_viewer.training.live.reading import StoryReader
from racer_viewer.training.live.swarm_file import SwarmReader
from racer_viewer.training.saved import CONFIG_FILE, check_name_is_free, free_name, write_config

RunState = Literal["starting", "learning", "paused", "finished", "stopped", "failed"]

LOOK_SECONDS = 0.03
"""Between two looks at what the learner wrote."""
SPEED_SECONDS = 3.0
"""Over which the steps per second are measured."""
GOODBYE_SECONDS = 2.0
"""That a window which closes waits for its last order to be sent."""


class WatchedRun:
    """A run that learns in another process, or that has learned. Every method returns at once.

    A thread of its own keeps it up to date. It never starts a learner again by itself: if one dies, the state is
    "failed" and `problem` says what happened.
    """

    def __init__(
        self,
        config: RunConfig,
        story: StoryReader,
        learner: Learner | None = None,
        address: Address | None = None,
        is_new: bool = False,
    ) -> None:
        """Use `start`, `attach` or `go_on`. story: as far as it goes before the learner began."""
        self.folder, self.config = story.folder, config
        self.problem = ""
        self._learner, self._address, self._is_new = learner, address, is_new
        self._reader, self._begins_before = story, story.begins
        self._connection: Connection | None = None
        self._lost = False
        """Whether there was a connection, or should have been one, and there is no more."""
        self._orders: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._ended_as: RunState | None = None
        self._leaving, self._discarded = threading.Event(), False
        self._swarm: SwarmReader | None = None
        self._swarm_steps = 0
        self._speeds = deque[tuple[float, int]]()
        self._thread: threading.Thread | None = None
        if learner is None and address is None:
            story.read_all()
            self._ended_as = "finished" if story.outcome == FINISHED else "stopped"
        else:
            self._thread = threading.Thread(target=self._follow, name="racer-watched-run", daemon=True)
            self._thread.start()

    @classmethod
    def start(cls, config: RunConfig, runs: Path) -> WatchedRun:
        """Begin a run in a folder of its own, by the config's name or a free one."""
        if config.name:
            check_name_is_free(config.name, runs)
        config = config if config.name else replace(config, name=free_name(config, runs))
        folder = runs / config.name
        folder.mkdir(parents=True)
        write_config(config, folder)
        return cls(config, StoryReader(folder), start_learner(folder), is_new=True)

    @classmethod
    def attach(cls, folder: Path) -> WatchedRun:
        """See a run that learns in the background; if none does there, what it has learned."""
        address = read_address(folder) if running_learner(folder) is not None else None
        return cls(load_run_config(folder / CONFIG_FILE), StoryReader(folder), address=address)

    @classmethod
    def go_on(cls, folder: Path, timesteps: int | None = None) -> WatchedRun:
        """Go on with a run from its latest checkpoint, or begin it anew if it has none; up to so many steps."""
        check_nobody_learns(folder)
        config = load_run_config(folder / CONFIG_FILE)
        if timesteps is not None:
            config = replace(config, timesteps=timesteps)
            write_config(config, folder)
        story = StoryReader(folder)
        story.read_all()
        return cls(config, story, start_learner(folder))

    @property
    def state(self) -> RunState:
        if self._ended_as is not None:
            return self._ended_as
        if self._reader.begins <= self._begins_before:
            return "starting"
        return "paused" if self._reader.paused else "learning"

    @property
    def curves(self) -> Curves:
        return self._reader.curves

    @property
    def steps(self) -> int:
        """Of all cars together, up to now."""
        curves = self.curves
        told = (*curves.steps[-1:], *(event.steps for event in curves.events[-1:]))
        return int(max((self._swarm_steps, *told)))

    @property
    def total(self) -> int:
        """Steps to learn for."""
        return self.config.timesteps

    @property
    def steps_per_second(self) -> float:
        """In the last seconds."""
        speeds = list(self._speeds)
        if len(speeds) < 2 or speeds[-1][0] <= speeds[0][0]:
            return 0.0
        return (speeds[-1][1] - speeds[0][1]) / (speeds[-1][0] - speeds[0][0])

    @property
    def pid(self) -> int | None:
        """Of the learner."""
        if self._learner is not None:
            return self._learner.pid
        return None if self._address is None else self._address.pid

    def swarm(self) -> Swarm | None:
        """All cars as they are now; None while there are none to see."""
        swarm = self._swarm
        latest = None if swarm is None else swarm.read()
        return None if latest is None else latest[0]

    def policy(self, number: int = -1) -> Agent:
        """The agent of a kept policy, by its number in `curves.policies`."""
        try:
            layout, steps, offset = self._reader.policies[number]
        except IndexError:
            raise AgentError(f"{self.folder.name} has no policy number {number} yet") from None
        return load_policy(self.folder, layout, steps, offset)

    def pause(self) -> None:
        self._orders.put({"do": orders.PAUSE})

    def resume(self) -> None:
        self._orders.put({"do": orders.RESUME})

    def save(self) -> None:
        """A checkpoint now."""
        self._orders.put({"do": orders.SAVE})

    def set_pace(self, times: float | None) -> None:
        """As many times real time; None is as fast as it can."""
        self._orders.put({"do": orders.PACE, "times": times})

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Other reward weights from now on, by the keys of an ai-config. What cannot be is a ConfigError."""
        parse_config({"weights": dict(weights)})
        self._orders.put({"do": orders.WEIGHTS, "weights": dict(weights)})

    def stop(self, discard: bool = False) -> None:
        """End it: what it knows is saved, or the whole folder is removed."""
        self._discarded = self._discarded or discard
        self._orders.put({"do": orders.DISCARD if discard else orders.STOP})

    def detach(self) -> None:
        """Leave it learning in the background; `attach` finds it again."""
        self._orders.put({"do": orders.DETACH})
        self._leaving.set()

    def close(self) -> None:
        """The window goes: the run is stopped and saved, unless it was detached or is over."""
        if self._thread is None or not self._thread.is_alive():
            return
        if not self._leaving.is_set():
            self.stop()
            self._leaving.set()
            if self._connection is None and self._learner is not None:
                self._learner.terminate()  # it does not listen yet
        self._thread.join(GOODBYE_SECONDS)

    def _follow(self) -> None:
        try:
            while not self._look():
                pass
        except Exception as error:  # whatever it is, the window must hear of it
            self.problem, self._ended_as = f"The run can no longer be followed: {error}", "failed"
        finally:
            if self._connection is not None:
                self._connection.close()

    def _look(self) -> bool:
        """One round; whether it was the last."""
        over = self._is_over()
        while self._reader.advance():
            pass
        self._note_weights()
        if over:
            self._finish()
            return True
        self._connect()
        leaving = self._leaving.is_set()
        self._send_orders()
        self._hear()
        self._note_cars()
        return leaving and self._connection is not None

    def _is_over(self) -> bool:
        return self._lost if self._learner is None else self._learner.poll() is not None

    def _connect(self) -> None:
        """As soon as the learner listens."""
        if self._connection is not None or self._lost:
            return
        address = self._address or read_address(self.folder)
        if address is None:
            return
        try:
            connection = call(address)
            send(connection, {"do": orders.WATCH})
        except CONNECTION_ERRORS:
            self._lost = self._learner is None
        else:
            self._connection = connection

    def _send_orders(self) -> None:
        """Those that wait, and for a while those that come. Before there is a connection they go on waiting."""
        if self._connection is None:
            time.sleep(LOOK_SECONDS)
            return
        try:
            if not self._leaving.is_set():
                send(self._connection, self._orders.get(timeout=LOOK_SECONDS))
            while not self._orders.empty():
                send(self._connection, self._orders.get())
        except queue.Empty:
            return
        except CONNECTION_ERRORS:
            self._lose()

    def _hear(self) -> None:
        """What the learner says, and whether it is gone."""
        try:
            while self._connection is not None and self._connection.poll():
                text = receive(self._connection).get("problem", "")
                self._reader.add_event(Event(self.steps, self._seconds, "problem", str(text)))
        except CONNECTION_ERRORS:
            self._lose()

    def _lose(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._lost = None, True

    @property
    def _seconds(self) -> float:
        events = self.curves.events
        return events[-1].seconds if events else 0.0

    def _note_weights(self) -> None:
        if self._reader.rewards is not None:
            self.config = replace(self.config, rewards=parse_config(self._reader.rewards))

    def _note_cars(self) -> None:
        if self._swarm is None and self.state != "starting":
            try:
                self._swarm = SwarmReader(self.folder)
            except (OSError, ValueError):
                return
        latest = None if self._swarm is None else self._swarm.read()
        if latest is not None:
            self._swarm_steps = latest[1]
            now = time.monotonic()
            self._speeds.append((now, latest[1]))
            while now - self._speeds[0][0] > SPEED_SECONDS:
                self._speeds.popleft()

    def _finish(self) -> None:
        """The learner is gone: what became of it?"""
        if self._discarded:
            shutil.rmtree(self.folder, ignore_errors=True)
        outcome = self._reader.outcome if self._reader.begins > self._begins_before else ""
        if outcome or self._discarded or not self.folder.exists():
            self._ended_as = "finished" if outcome == FINISHED and not self._discarded else "stopped"
            return
        code = None if self._learner is None else self._learner.returncode
        self.problem = explain_end(self.folder, code, begun=self._reader.begins > 0)
        if self._never_was():
            shutil.rmtree(self.folder, ignore_errors=True)
        self._ended_as = "failed"

    def _never_was(self) -> bool:
        """Whether a new run was refused, or given up before it began: its folder is not worth keeping then."""
        refused = self._learner is not None and self._learner.returncode == USAGE_ERROR
        return self._is_new and not self._reader.begins and (refused or self._leaving.is_set())
