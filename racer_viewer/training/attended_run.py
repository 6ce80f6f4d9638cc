"""A run that learns in this process, and that windows can look at and give orders to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from stable_baselines3.common.callbacks import BaseCallback

from racer_viewer.training.callbacks import Conductor, SwarmCallback
from racer_viewer.training.car_feed import CarFeedWriter
from racer_viewer.training.control import ControlServer
from racer_viewer.training.overseer import Progress
from racer_viewer.training.run import Outcome, Run
from racer_viewer.training.run_folder import LEARNER_LOG_FILE, latest_model, remove_run, write_config
from racer_viewer.training.run_log_reader import load_history


@contextmanager
def at_a_terminal(training: Run) -> Iterator[ControlServer]:
    """A run's folder in use, as everybody can see; windows come and go. Nothing is left of a run that never began."""
    folder, is_new = training.folder, not training.folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if is_new:
        write_config(training.config, folder)  # before it can be seen that somebody learns here
    orders = ControlServer(folder)
    try:
        with closing(orders):
            write_config(training.config, folder)
            (folder / LEARNER_LOG_FILE).unlink(missing_ok=True)  # last words of another learner
            yield orders
    finally:
        if is_new and latest_model(folder) is None and not load_history(folder).last_steps:
            remove_run(folder)


def learn_attended(
    training: Run, orders: ControlServer, report: Callable[[Progress], None] = lambda progress: None
) -> Outcome:
    """Learn, and do what viewers ask for, to the end of the run."""
    conductor = Conductor(training, orders)
    with ExitStack() as open_things:
        companions = [*_cars_to_show(training, orders, open_things), conductor]
        outcome = training.learn(report, companions, on_problem=orders.report_problem)
    conductor.hear_the_rest()
    return outcome


def _cars_to_show(training: Run, orders: ControlServer, open_things: ExitStack) -> list[BaseCallback]:
    """Those of a bridge are not here to be seen; and a full disk is no reason not to learn."""
    if training.on_bridge:
        return []
    try:
        writer = open_things.enter_context(closing(CarFeedWriter(training.folder, training.config.num_cars)))
    except OSError as error:
        orders.report_problem(f"the cars cannot be shown: {error.strerror or error}; the run goes on")
        return []
    return [SwarmCallback(writer, training.config.tracks, training.metrics, lambda: orders.watched)]
