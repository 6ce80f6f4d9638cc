"""The stopwatch: laps, deltas by gate, sectors."""

from racer_viewer.timing import LapTime, Stopwatch

GATES = 6


def drive(watch: Stopwatch, lap: int, gate_ticks: list[int]) -> list[int | None]:
    """One lap with these times at gates 1 to 5 and at the line; what the delta was at each."""
    deltas = []
    for tick in range(1, gate_ticks[-1] + 1):
        number = sum(tick >= each for each in gate_ticks)
        over = tick == gate_ticks[-1]
        watch.tick(lap + over, 0 if over else tick, 0 if over else number, tick if over else 0)
        if tick in gate_ticks:
            deltas.append(watch.timing().delta)
    return deltas


def test_a_lap_is_timed_with_its_gates_and_sectors() -> None:
    watch = Stopwatch(GATES)
    assert drive(watch, 1, [10, 20, 30, 45, 60, 80]) == [None] * 6
    assert watch.laps == [LapTime(80, (80, 10, 20, 30, 45, 60))]
    assert watch.laps[0].sectors() == (20, 25, 35)
    assert sum(watch.laps[0].sectors()) == 80
    timing = watch.timing()
    assert (timing.lap, timing.last, timing.best) == (2, 80, 80)


def test_the_delta_is_against_the_lap_to_beat_at_the_same_gate() -> None:
    watch = Stopwatch(GATES, LapTime(80, (80, 10, 20, 30, 45, 60)))
    assert drive(watch, 1, [12, 21, 30, 44, 58, 77]) == [2, 1, 0, -1, -2, -3]
    assert watch.best == watch.laps[0]


def test_a_slower_lap_does_not_take_the_place_of_the_best() -> None:
    record = LapTime(70, (70, 9, 18, 27, 40, 55))
    watch = Stopwatch(GATES, record)
    drive(watch, 1, [10, 20, 30, 45, 60, 80])
    assert watch.best == record
    assert watch.best_of_run == watch.laps[0]


def test_sectors_show_the_lap_before_until_the_first_is_done() -> None:
    watch = Stopwatch(GATES)
    drive(watch, 1, [10, 20, 30, 45, 60, 80])
    assert [sector.now for sector in watch.timing().sectors] == [20, 25, 35]
    watch.tick(2, 12, 1, 0)
    watch.tick(2, 22, 2, 0)
    assert [sector.now for sector in watch.timing().sectors] == [22, None, None]
    assert [sector.best for sector in watch.timing().sectors] == [20, 25, 35]
