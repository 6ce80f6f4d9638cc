"""Run monitor: starts or attaches to a learner process, follows its run for a window and sends it commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from racer_env.engine import Circuit, parse_config
from racer_env.errors import CircuitError, RacerError, in_one_line
from racer_viewer.agents import Agent, AgentError
from racer_viewer.paths import open_regular
from racer_viewer.run_history import RunEvent, RunHistory, Swarm
from racer_viewer.runtime import program_command
from racer_viewer.training import control
from racer_viewer.training.car_feed import CarFeedMonitor
from racer_viewer.training.config import Engine, RunConfig, load_run_config
from racer_viewer.training.control import ControlClient, release_learner
from racer_viewer.training.policy_log import load_policy
from racer_viewer.training.run_folder import (
    CONFIG_FILE,
    LEARNER_LOG_FILE,
    ResumeError,
    check_name_is_free,
    folder_of,
    free_name,
    keep_files,
    latest_model,
    remove_run,
    resumed_config,
    steps_of,
    store_circuit,
    write_config,
)
from racer_viewer.training.run_lock import check_not_running, running_learner
from racer_viewer.training.run_log_reader import FINISHED, SPEED, RunLogReader

USAGE_ERROR = 2
"""Exit code of a learner that has printed what was wrong."""
MAX_COMMAND_SIZE = 1000
"""Maximum size of a command beside the circuit in it [bytes]."""
CLOSE_TIMEOUT = 2.0
"""Time that a closing window waits for its last command to be sent [s]."""

MAX_OUTPUT_SIZE = 2**14
"""Number of bytes at the end of a learner's output in which its last line is looked for."""

LearnerProcess = subprocess.Popen[bytes]
RunState = Literal["starting", "learning", "paused", "finished", "stopped", "failed"]


def start_learner(where: Path, prepared: LearnerProcess | None = None) -> LearnerProcess:
    """Start a learner process in a session of its own, so that Ctrl-C in the window's terminal does not reach it.

    where: run folder, or the model in it to resume from. prepared: process of `prepare_learner`, which is used if it
    still runs. The process ends when its standard input is closed.
    """
    if prepared is not None and prepared.poll() is None and prepared.stdin is not None:
        try:
            prepared.stdin.write(f"{where.absolute()}\n".encode())
            prepared.stdin.flush()
            return prepared
        except OSError:
            discard_learner(prepared)
    with (folder_of(where) / LEARNER_LOG_FILE).open("wb") as log:
        return _start_process(log, str(where.absolute()))


def prepare_learner() -> LearnerProcess:
    """Start a process that imports everything and then waits for `start_learner`.

    A process needs a second or more for that. It ends when its standard input is closed.
    """
    return _start_process(subprocess.DEVNULL)


def discard_learner(prepared: LearnerProcess) -> None:
    """End a process of `prepare_learner` that is not needed."""
    with suppress(OSError), prepared:
        prepared.kill()


def _start_process(output: int | IO[bytes], *arguments: str) -> LearnerProcess:
    return subprocess.Popen(
        [*program_command(), "learn", *arguments],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        creationflags=_windows_flags(),
    )


def explain_end(folder: Path, code: int | None, has_log: bool) -> str:
    """Explain why a learner ended without logging an outcome, and what can be resumed.

    code: exit code, None if not known.
    has_log: True if the run log contains a start.
    """
    output = _last_output(folder)
    if code == USAGE_ERROR and output:
        return f"{output}. {_what_to_resume(folder)}" if has_log else output
    reason = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
    printed = f" Its last output: {output}." if output else ""
    return f"The learner ended unexpectedly{reason}.{printed} {_what_to_resume(folder)}"


def _what_to_resume(folder: Path) -> str:
    try:
        model = latest_model(folder)
        steps = None if model is None else steps_of(model)
    except (ResumeError, OSError):
        steps = None
    if steps is None:
        return "No checkpoint was saved."
    return f"The run can be resumed from its last checkpoint at {steps:,} steps."


def _last_output(folder: Path) -> str:
    """Return the last line printed by the learner."""
    try:
        with open_regular(folder / LEARNER_LOG_FILE) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_OUTPUT_SIZE))
            text = file.read(MAX_OUTPUT_SIZE).decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("racer-viewer: ") if lines else ""


def _windows_flags() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


class RunMonitor:
    """A run that learns in another process, or that has ended. Methods other than `close` do not block.

    A thread follows the run. A learner is never restarted: if it dies, the state is "failed" and `problem` says what
    happened. A suspended or slow learner is waited for without a timeout.
    """

    def __init__(
        self,
        config: RunConfig,
        reader: RunLogReader,
        learner: LearnerProcess | None = None,
        pid: int | None = None,
        is_new: bool = False,
    ) -> None:
        """Use `start`, `attach` or `continue_run` instead.

        reader: reader that has read the log so far.
        learner: learner started by this process.
        pid: process id of a learner started by another process.
        """
        self.folder, self.config = reader.folder, config
        self.problem = ""
        self._learner, self._pid, self._is_new = learner, pid, is_new
        self._reader = reader
        self._starts_before = reader.starts if learner or reader.outcome else max(0, reader.starts - 1)
        """Number of starts in the log before this learner."""
        self._rewards: Mapping[str, Any] | None = None
        self._exchanges = reader.exchanges
        self._pace: float | None = None
        self._client, self._cars = ControlClient(self.folder), CarFeedMonitor(self.folder)
        self._ended_as: RunState | None = None
        self._ending = threading.Lock()
        self._leaving, self._detached, self._discarded = threading.Event(), False, False
        self._thread: threading.Thread | None = None
        if learner is None and pid is None:
            self._ended_as = "finished" if reader.outcome == FINISHED else "stopped"
        else:
            self._thread = threading.Thread(target=self._follow, name="racer-run-monitor", daemon=True)
            self._thread.start()

    @classmethod
    def start(
        cls, config: RunConfig, runs: Path, prepared: LearnerProcess | None = None, circuit: Circuit | None = None
    ) -> RunMonitor:
        """Start a run in a new folder, named by the config or by a free name.

        prepared: see `start_learner`. circuit: circuit to train on instead of those of the config; it need not be saved
        anywhere.
        """
        if config.name:
            check_name_is_free(config.name, runs)
        config = config if config.name else replace(config, name=free_name(config, runs))
        folder = runs / config.name
        folder.mkdir(parents=True)
        if circuit is not None:
            config = replace(config, tracks=(store_circuit(circuit, folder),))
        config = keep_files(config, folder)
        write_config(config, folder)
        return cls(config, RunLogReader(folder), start_learner(folder, prepared), is_new=True)

    @classmethod
    def attach(cls, folder: Path) -> RunMonitor:
        """Follow a run that learns in the background or at a terminal, or open one that has ended."""
        config, reader, pid = load_run_config(folder / CONFIG_FILE), RunLogReader(folder), running_learner(folder)
        reader.read_all()
        return cls(config, reader, pid=pid)

    @classmethod
    def continue_run(cls, where: Path, timesteps: int | None = None, engine: Engine | None = None) -> RunMonitor:
        """Resume a run from its latest checkpoint, or start it anew if it has none.

        where: run folder, or the model in it to resume from.
        timesteps, engine: new total number of steps and other engine; None keeps the old ones. Raises RacerError if no
            steps are left.
        """
        folder = folder_of(where)
        check_not_running(folder)
        config = resumed_config(where, timesteps, engine)
        if timesteps is not None or engine is not None:
            write_config(config, folder)
        reader = RunLogReader(folder)
        reader.read_all()
        return cls(config, reader, start_learner(where))

    @property
    def state(self) -> RunState:
        if self._ended_as is not None:
            return self._ended_as
        if self._reader.starts <= self._starts_before:
            return "starting"
        return "paused" if self._reader.paused else "learning"

    @property
    def history(self) -> RunHistory:
        return self._reader.history

    @property
    def steps(self) -> int:
        """Total environment steps so far, summed over cars."""
        return max(self._cars.steps, self.history.last_steps)

    @property
    def total(self) -> int:
        """Number of steps to learn for."""
        return self.config.timesteps

    @property
    def steps_per_second(self) -> float:
        """Learning speed over the last seconds; without a car feed, during the last update."""
        if self._cars.available or self.state == "paused":
            return self._cars.steps_per_second
        return float(next(iter(self.history.values.get(SPEED, ())[-1:]), 0.0))

    @property
    def pace(self) -> float | None:
        """Learning speed in multiples of real time, as last set here or reported by the learner; None is full speed."""
        return self._pace

    @property
    def weights(self) -> Mapping[str, float]:
        """Current reward weights, by the keys of an ai-config."""
        weights: dict[str, float] = self.config.rewards.to_json()["weights"]
        return weights

    @property
    def connected(self) -> bool:
        """True while connected to the control socket of the learner."""
        return self._client.connected

    @property
    def idle(self) -> bool:
        """True if every command was sent."""
        return self._client.idle

    @property
    def pid(self) -> int | None:
        """Process id of the learner."""
        return self._pid if self._learner is None else self._learner.pid

    def swarm(self) -> Swarm | None:
        """Return all cars as they are now; None without a car feed."""
        return self._cars.swarm()

    def policy(self, number: int = -1) -> Agent:
        """Load a logged policy by its index in `history.policies`."""
        try:
            layout, steps, offset = self._reader.policies[number]
        except IndexError:
            raise AgentError(f"{self.folder.name} has no policy number {number} yet") from None
        return load_policy(self.folder, layout, steps, offset)

    def pause(self) -> None:
        self._client.send_command(control.PAUSE)

    def resume(self) -> None:
        self._client.send_command(control.RESUME)

    def save(self) -> None:
        """Save a checkpoint now."""
        self._client.send_command(control.SAVE)

    def set_pace(self, times: float | None) -> None:
        """Set the learning speed in multiples of real time; None is full speed."""
        self._pace = times
        self._client.send_command(control.PACE, times=times)

    def set_weights(self, weights: Mapping[str, float], terms: Mapping[str, str] | None = None) -> None:
        """Change reward weights, by the keys of an ai-config; missing ones stay. Raises ConfigError if invalid.

        terms: all terms from now on; None keeps them.
        """
        parse_config({"weights": dict(weights), "terms": dict(terms or {})})
        changed = {} if terms is None else {"terms": dict(terms)}
        self._client.send_command(control.WEIGHTS, weights=dict(weights), **changed)

    def set_circuit(self, circuit: Circuit, number: int = 0) -> None:
        """Let the cars of a circuit start their next episodes on another one.

        number: index of the circuit in `config.circuits`. A circuit that cannot be driven changes nothing, and becomes
        a problem in the log. Raises CircuitError if it is too large to be sent.
        """
        values = msgspec.to_builtins(circuit)
        if len(json.dumps(values)) > control.MAX_MESSAGE_SIZE - MAX_COMMAND_SIZE:
            raise CircuitError(f"{circuit.name} has too many control points for a run: delete some")
        self._client.send_command(control.CIRCUIT, circuit=values, number=number)

    def stop(self, discard: bool = False) -> None:
        """End the run and save its model, or with `discard` remove its folder, also after the run has ended."""
        with self._ending:
            self._discarded = self._discarded or discard
            if self._ended_as is None:
                self._client.send_command(control.DISCARD if discard else control.STOP)
            elif discard and running_learner(self.folder) is None:
                self._remove()

    def detach(self) -> None:
        """Leave the run learning in the background at full speed; `attach` follows it again."""
        self._detached = True
        if self._learner is not None:
            release_learner(self._learner, keep_running=True)  # it may not listen yet
        self._client.send_command(control.DETACH)
        self._leaving.set()

    def close(self) -> None:
        """Stop following the run, when the window closes without `stop` or `detach`.

        A run started here is stopped and saved. Another run does what it does without viewers: at a terminal it
        continues, in the background it is stopped and saved.
        """
        if self._thread is None or not self._thread.is_alive():
            return
        if not self._leaving.is_set():
            if self._learner is not None:
                self.stop()
            self._leaving.set()
            if not self._client.connected and self._learner is not None:
                self._learner.terminate()  # it does not listen yet
        self._thread.join(CLOSE_TIMEOUT)

    def _follow(self) -> None:
        try:
            while not self._poll():
                pass
        except Exception as error:  # the window must show any error of this thread
            self.problem, self._ended_as = f"The run can no longer be followed: {in_one_line(error)}", "failed"
        finally:
            self._client.close()
            self._cars.close()
            if self._learner is not None:
                release_learner(self._learner, keep_running=False)

    def _poll(self) -> bool:
        """Read what is new and send commands once; return True if there is nothing left to follow."""
        ended = self._has_ended()
        while self._reader.advance():
            pass
        self._update_config()
        if ended:
            self._finish()
            return True
        self._client.connect()
        leaving = self._leaving.is_set()
        self._client.flush(wait=not leaving)
        self._read_messages()
        if self.state != "starting":
            self._cars.poll()
        return leaving and not self._discarded and self._may_leave()

    def _may_leave(self) -> bool:
        """Return True if the learner has received every command."""
        return self._detached or self._client.connected or (self._learner is None and self._client.idle)

    def _has_ended(self) -> bool:
        """Return True if the learner process is gone; silence alone does not count."""
        return running_learner(self.folder) is None if self._learner is None else self._learner.poll() is not None

    def _read_messages(self) -> None:
        for message in self._client.messages():
            if "problem" in message:
                events = self.history.events
                seconds = events[-1].seconds if events else 0.0
                self._reader.add_event(RunEvent(self.steps, seconds, "problem", str(message["problem"])))
            if "pace" in message:
                self._pace = message["pace"]

    def _update_config(self) -> None:
        """Take over the rewards and circuits that the run was changed to."""
        rewards, reader = self._reader.rewards, self._reader
        if reader.exchanges != self._exchanges and len(reader.history.circuits) == len(self.config.circuits):
            self._exchanges, before = reader.exchanges, self.config.circuits
            names = dict(zip(before, reader.history.circuits, strict=True))
            self.config = replace(self.config, tracks=tuple(names[name] for name in self.config.tracks))
        if rewards is not None and rewards is not self._rewards:
            self._rewards = rewards
            self.config = replace(self.config, rewards=parse_config(rewards))

    def _finish(self) -> None:
        """Determine the final state after the learner has ended."""
        self._cars.close()
        started = self._learner is None or self._reader.starts > self._starts_before
        outcome = self._reader.outcome if started else ""
        with self._ending:
            if self._discarded:
                self._remove()
            removed = not (self.folder / CONFIG_FILE).exists()
            if removed and not self._discarded:
                self.problem = "The folder of this run was discarded or removed."
            if outcome or self._discarded or removed:
                self._ended_as = "finished" if outcome == FINISHED and not self._discarded else "stopped"
                return
            code = None if self._learner is None else self._learner.returncode
            self.problem = explain_end(self.folder, code, has_log=self._reader.starts > 0)
            if self._never_started():
                self._remove()
            self._ended_as = "failed"

    def _remove(self) -> None:
        try:
            remove_run(self.folder)
        except RacerError as error:
            self.problem = str(error)

    def _never_started(self) -> bool:
        """Return True if a new run was refused or cancelled before it started: its folder is not worth keeping."""
        refused = self._learner is not None and self._learner.returncode == USAGE_ERROR
        cancelled = self._leaving.is_set() and not self._detached
        return self._is_new and not self._reader.starts and (refused or cancelled)
