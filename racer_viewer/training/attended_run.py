"""A run that learns in this process, and that windows can look at and give orders to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from stable_baselines3.common.callbacks import BaseCallback

from racer_viewer.training.callbacks import Conductor, SwarmCallback
from racer_viewer.training.car_feed import SwarmWriter
from racer_viewer.training.control import Orders
from racer_viewer.training.overseer import Progress
from racer_viewer.training.run import Outcome, Run
from racer_viewer.training.run_files import LOG_FILE
from racer_viewer.training.run_folder import latest_model, remove_run, write_config
from racer_viewer.training.run_log_reader import load_curves


@contextmanager
def at_a_terminal(training: Run) -> Iterator[Orders]:
    """A run's folder in use, as everybody can see; windows come and go. Nothing is left of a run that never began."""
    folder, is_new = training.folder, not training.folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if is_new:
        write_config(training.config, folder)  # before it can be seen that somebody learns here
    orders = Orders(folder)
    try:
        with closing(orders):
            write_config(training.config, folder)
            (folder / LOG_FILE).unlink(missing_ok=True)  # last words of another learner
            yield orders
    finally:
        if is_new and latest_model(folder) is None and not load_curves(folder).last_steps:
            remove_run(folder)


def learn_attended(
    training: Run, orders: Orders, report: Callable[[Progress], None] = lambda progress: None
) -> Outcome:
    """Learn, and do what viewers ask for, to the end of the run."""
    conductor = Conductor(training, orders)
    with ExitStack() as open_things:
        companions = [*_cars_to_show(training, orders, open_things), conductor]
        outcome = training.learn(report, companions, on_problem=orders.tell)
    conductor.hear_the_rest()
    return outcome


def _cars_to_show(training: Run, orders: Orders, open_things: ExitStack) -> list[BaseCallback]:
    """Those of a bridge are not here to be seen; and a full disk is no reason not to learn."""
    if training.on_bridge:
        return []
    try:
        writer = open_things.enter_context(closing(SwarmWriter(training.folder, training.config.num_cars)))
    except OSError as error:
        orders.tell(f"the cars cannot be shown: {error.strerror or error}; the run goes on")
        return []
    return [SwarmCallback(writer, training.config.tracks, training.metrics, lambda: orders.watched)]
