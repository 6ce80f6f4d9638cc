"""The loops that play, and their gains, follow from what the car does."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racer_env.engine import CAR
from racer_viewer.sound import CarSound, car_sound
from racer_viewer.sound.drive_sound import (
    BANDS,
    RUMBLE,
    SCRAPE,
    TOP_SPEEDS,
    TYRES,
    WIND,
    Loop,
    SoundState,
    advance,
    band_revs,
    gear_at,
    initial_state,
    loop_levels,
    place_in_bands,
    revs_at,
)
from tests.sound.offline_mix import hear

ROAD, RUNOFF, SHOULDER = 0, 1, 2
FAST = CarSound(160.0, 1.0)


def after(car: CarSound, ticks: int = 120) -> SoundState:
    """Return the state after the car has done this for a while."""
    return hear([car] * ticks)[-1]


def engine_power(state: SoundState) -> float:
    return sum(gain**2 for loop, gain in loop_levels(state).items() if loop.kind == "body")


def test_a_car_is_heard_from_its_row() -> None:
    row = np.zeros(1, CAR)[0]
    row["speed"], row["throttle"], row["slip_angle"], row["surface"], row["wall_contact"] = 80.0, 0.5, 0.1, 2, True
    assert car_sound(row) == CarSound(80.0, 0.5, 0.1, SHOULDER, True)


def test_revs_rise_in_every_gear_and_drop_at_every_shift() -> None:
    gear, last, drops = 0, 0.0, []
    for speed in np.arange(0.0, 160.0, 0.25):
        before, gear = gear, gear_at(speed, gear)
        revs = revs_at(speed, gear, 0.0, 0.0)
        if gear == before:
            assert revs >= last
        else:
            drops.append(revs / last)
        last = revs
    assert len(drops) == 5
    assert all(0.65 < drop < 0.8 for drop in drops)
    assert 0.9 < last < 0.97, "a little is left at top speed"


@pytest.mark.parametrize("gear", range(len(TOP_SPEEDS) - 1))
def test_the_gearbox_does_not_hunt(gear: int) -> None:
    shift = 0.97 * TOP_SPEEDS[gear]
    upper = gear_at(shift + 0.1, gear)
    assert upper == gear + 1
    assert gear_at(shift - 2.0, upper) == upper


def test_gears_are_skipped_when_a_wall_stops_the_car() -> None:
    assert gear_at(0.0, 5) == 0
    assert gear_at(160.0, 0) == 5


def test_at_a_standstill_the_throttle_revs_the_engine() -> None:
    assert after(CarSound(0.0, 1.0)).revs > 2.0 * after(CarSound(0.0, 0.0)).revs


def test_a_bend_can_be_heard_at_top_speed() -> None:
    straight, bend = after(CarSound(160.0, 1.0)), after(CarSound(160.0, 1.0, slip_angle=0.03))
    assert bend.next_band < straight.next_band


def test_bands_and_revs_are_two_names_for_the_same() -> None:
    for band in range(BANDS):
        assert place_in_bands(band_revs(band)) == pytest.approx(band)
    assert place_in_bands(0.0) == 0.0
    assert place_in_bands(2.0) == BANDS - 1


def test_at_steady_speed_one_engine_loop_sounds_alone() -> None:
    for speed in np.arange(0.0, 161.0, 4.0):
        state = after(CarSound(speed, 1.0))
        bands = {loop.band for loop in loop_levels(state) if loop.kind == "body"}
        assert bands == {state.next_band}
        assert abs(place_in_bands(state.revs) - state.next_band) <= 0.6


def test_a_crossfade_keeps_its_power() -> None:
    for fade in np.linspace(0.0, 1.0, 11):
        state = SoundState(revs=0.5, load=1.0, band=10, next_band=11, fade=fade, presence=1.0)
        whole = SoundState(revs=0.5, load=1.0, band=11, next_band=11, fade=1.0, presence=1.0)
        assert engine_power(state) == pytest.approx(engine_power(whole), rel=0.001)


def test_a_fade_ends_before_the_next_begins() -> None:
    ticks = hear([CarSound(min(160.0, 1.1 * i), 1.0) for i in range(240)])
    for before, now in itertools.pairwise(ticks):
        if now.next_band != before.next_band:
            assert now.band == before.next_band
            assert now.fade == 0.0


def test_pulling_is_louder_than_coasting_and_has_bite() -> None:
    pulling, coasting = after(CarSound(100.0, 1.0)), after(CarSound(100.0, 0.0))
    assert engine_power(pulling) > 3.0 * engine_power(coasting)
    assert any(loop.kind == "load" for loop in loop_levels(pulling))
    assert not any(loop.kind == "load" for loop in loop_levels(coasting))


def test_the_engine_lets_go_while_it_shifts() -> None:
    speeds = [40.0] * 60 + [42.5] * 30
    ticks = hear([CarSound(speed, 1.0) for speed in speeds])
    assert ticks[59].gear + 1 == ticks[60].gear
    assert min(each.load for each in ticks[60:75]) < 0.6 * ticks[59].load
    assert ticks[-1].load > 0.95


def test_a_drive_begins_from_silence_and_without_a_jump() -> None:
    assert loop_levels(initial_state(CarSound(160.0, 1.0, 0.2))) == {}
    ticks = hear([CarSound(160.0, 1.0, 0.2)] * 40)
    old: dict[Loop, float] = {}
    for new in map(loop_levels, ticks):
        assert all(abs(new.get(loop, 0.0) - old.get(loop, 0.0)) < 0.3 for loop in old | new)
        old = new


def test_a_car_that_is_under_way_does_not_rev_up_from_idle() -> None:
    first = hear([FAST])[0]
    assert first.gear == 5
    assert first.next_band == after(FAST).next_band


def test_tyres_sound_by_slip_and_only_as_the_ground_allows() -> None:
    gains = [loop_levels(after(CarSound(100.0, 1.0, slip))).get(TYRES, 0.0) for slip in (0.0, 0.03, 0.08, 0.2)]
    assert gains[0] == 0.0
    assert gains == sorted(gains)
    assert gains[1] < 0.5
    assert gains[3] == pytest.approx(1.0, abs=0.01)
    road, shoulder, runoff = (
        loop_levels(after(CarSound(100.0, 1.0, 0.2, surface)))[TYRES] for surface in (ROAD, SHOULDER, RUNOFF)
    )
    assert road > shoulder > runoff
    assert TYRES not in loop_levels(after(CarSound(0.0, 1.0, 0.2)))


def test_off_the_road_it_rumbles() -> None:
    road, shoulder, runoff = (
        loop_levels(after(CarSound(100.0, 1.0, 0.0, surface))).get(RUMBLE, 0.0) for surface in (ROAD, SHOULDER, RUNOFF)
    )
    assert road == 0.0
    assert 0.0 < shoulder < runoff
    assert RUMBLE not in loop_levels(after(CarSound(0.0, 1.0, 0.0, RUNOFF)))


def test_wind_grows_with_speed() -> None:
    gains = [loop_levels(after(CarSound(speed, 1.0))).get(WIND, 0.0) for speed in (0.0, 60.0, 120.0, 160.0)]
    assert gains == sorted(set(gains))


def test_a_wall_is_one_hit_and_a_scrape_as_long_as_it_lasts() -> None:
    free, touch = CarSound(100.0, 1.0), CarSound(60.0, 1.0, wall_contact=True)
    drive = [free] * 30 + [touch] * 10 + [free] * 5 + [touch] * 10 + [free] * 60 + [touch] * 3
    ticks = hear(drive)
    assert [i for i, each in enumerate(ticks) if each.hit] == [30, 115]
    assert SCRAPE in loop_levels(ticks[54])
    assert SCRAPE not in loop_levels(ticks[114])


def test_a_harder_hit_is_louder() -> None:
    def hit(before: float, now: float) -> float:
        return advance(SoundState(speed=before), CarSound(now, 0.0, wall_contact=True), 1 / 60).hit

    assert 0.0 < hit(5.0, 5.0) < hit(100.0, 100.0) < hit(100.0, 70.0) < hit(140.0, 20.0) == 1.0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.builds(
            CarSound,
            st.floats(0.0, 160.0),
            st.floats(0.0, 1.0),
            st.floats(0.0, math.pi),
            st.integers(0, 2),
            st.booleans(),
        ),
        max_size=40,
    ),
    st.floats(0.001, 0.1),
)
def test_whatever_the_car_does_gains_stay_within_limits(drive: list[CarSound], seconds: float) -> None:
    state = SoundState()
    for car in drive:
        state = advance(state, car, seconds)
        levels = loop_levels(state)
        assert len(levels) <= 8
        assert all(0.0 < gain <= 1.0 for gain in levels.values())
        assert all(0 <= loop.band < BANDS for loop in levels)
        assert 0.0 <= state.hit <= 1.0
