"""The stopwatch: laps, deltas by gate, sectors."""

from racer_viewer.timing import LapTime, RaceProgress, SectorRank, SectorTimes, Stopwatch

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


def test_sectors_are_purple_green_or_slower() -> None:
    fastest = SectorTimes(LapTime(70, (70, 9, 18, 27, 40, 55)))
    watch = Stopwatch(GATES, None, fastest)
    drive(watch, 1, [10, 20, 30, 38, 60, 70])
    ranks = [sector.rank for sector in watch.timing().sectors]
    assert ranks == [SectorRank.BEST, SectorRank.FASTEST, SectorRank.BEST]
    drive(watch, 2, [8, 17, 30, 42, 60, 77])
    ranks = [sector.rank for sector in watch.timing().sectors]
    assert ranks == [SectorRank.FASTEST, SectorRank.SLOWER, SectorRank.SLOWER]


def test_a_lap_with_a_fault_is_not_the_best_and_its_sectors_have_no_rank() -> None:
    watch = Stopwatch(GATES)
    watch.tick(1, 1, 0, 0, "off the road")
    drive(watch, 1, [10, 20, 30, 38, 60, 70])
    assert watch.laps[0].fault == "off the road in sector 1"
    assert watch.best is None
    assert {sector.rank for sector in watch.timing().sectors} == {SectorRank.NONE}
    drive(watch, 2, [10, 20, 30, 45, 60, 80])
    assert watch.best == watch.laps[1]


def test_driving_backwards_is_the_wrong_way() -> None:
    car = {"checkpoint": 0, "lap_gates": 0, "arc": 0.0}
    progress = RaceProgress(600.0, GATES, car)
    for tick in range(1, 61):
        progress.add(0, float(tick))
    assert progress.now == 60.0
    for tick in range(1, 41):
        progress.add(0, 60.0 - tick)
        assert progress.went_back(30, 4.0) == (tick >= 30)
    progress.add(0, 599.0)
    assert progress.now == -1.0
