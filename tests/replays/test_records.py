"""Records: only valid replays are entered, in the right order, and they stay."""

import contextlib
import sqlite3
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from racer_env.engine import Circuit, Medals, Start, circuits
from racer_env.errors import RacerError
from racer_viewer.replays import ENGINE_VERSION, Replay, replay_to_bytes, trace_replay
from racer_viewer.replays import records as records_module
from racer_viewer.replays.records import CircuitKey, RecordEntry, RecordError, Records, circuit_key, medal_for
from tests.replays.replay_drives import DATE, RING, ring_run, weaving_run

LATER = DATE + timedelta(minutes=5)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "data" / "records.db")


def entered(records: Records, replay: Replay) -> RecordEntry:
    entry = records.enter(replay)
    assert entry is not None
    return entry


def with_laps(replay: Replay, *laps: int) -> Replay:
    return replace(replay, laps=laps)


def test_a_record_has_the_values_of_its_replay(records: Records) -> None:
    replay = ring_run()
    entry = entered(records, replay)
    assert entry == RecordEntry(
        number=entry.number,
        circuit=circuit_key(RING),
        circuit_name="Ring",
        driver="Anna",
        best_lap=min(replay.laps),
        laps=len(replay.laps),
        clean=True,
        date=DATE,
    )
    assert records.best(RING) == entry
    assert records.top(RING) == (entry,)
    assert records.notice is None


def test_a_record_is_its_replay(records: Records) -> None:
    kept = records.replay_of(entered(records, ring_run()))
    assert replay_to_bytes(kept) == replay_to_bytes(ring_run())
    assert trace_replay(kept).mismatch is None


def test_records_are_read_by_later_processes(records: Records, tmp_path: Path) -> None:
    entry = entered(records, ring_run())
    assert Records(tmp_path / "data" / "records.db").top(RING) == (entry,)


def test_the_best_lap_decides_and_then_the_date(records: Records) -> None:
    slow = entered(records, ring_run(throttle=0.5))
    late = entered(records, replace(ring_run(), date=LATER))
    early = entered(records, ring_run())
    assert slow.best_lap > early.best_lap == late.best_lap
    assert records.top(RING) == (early, late, slow)
    assert records.top(RING, limit=2) == (early, late)
    assert records.best(RING) == early


def test_the_same_replay_twice_is_one_record(records: Records) -> None:
    assert records.enter(ring_run()) == records.enter(ring_run())
    assert len(records.top(RING)) == 1


def test_only_the_best_are_kept(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.db", kept=2)
    slow = entered(records, ring_run(throttle=0.5))
    fast = [entered(records, replace(ring_run(), date=DATE + timedelta(days=day))) for day in range(2)]
    assert records.top(RING) == tuple(fast)
    assert records.enter(ring_run(throttle=0.5)) is None
    with pytest.raises(RecordError, match="no longer exists"):
        records.replay_of(slow)


def test_a_changed_circuit_is_another_one(records: Records) -> None:
    x, y, width = RING.control_points[0]
    moved = msgspec.structs.replace(RING, control_points=((x + 0.1, y, width), *RING.control_points[1:]))
    gated = msgspec.structs.replace(RING, gates=9)
    renamed = msgspec.structs.replace(RING, name="Our ring", description="round")
    entry = entered(records, ring_run())
    assert records.best(moved) is None
    assert records.best(gated) is None
    assert records.best(renamed) == entry


def test_circuits_with_a_record_are_listed(records: Records) -> None:
    other = msgspec.structs.replace(RING, id="a-ring")
    entered(records, ring_run())
    entered(records, replace(ring_run(), circuit=other))
    keys = records.circuits()
    assert keys == (circuit_key(other), circuit_key(RING))
    assert [records.best(key) for key in keys] == [records.best(other), records.best(RING)]


def test_a_record_can_be_deleted(records: Records) -> None:
    entry = entered(records, ring_run())
    records.delete(entry)
    records.delete(entry)
    assert records.top(RING) == ()
    again = entered(records, ring_run())
    assert again.number != entry.number


def refused(records: Records, replay: Replay) -> str:
    with pytest.raises(RecordError) as error:
        records.enter(replay)
    assert records.top(replay.circuit) == ()
    return str(error.value)


def test_a_wrong_lap_time_is_refused(records: Records) -> None:
    first, *others = ring_run().laps
    assert "re-simulated" in refused(records, with_laps(ring_run(), first - 1, *others))
    assert "re-simulated" in refused(records, with_laps(ring_run(), first))
    actions = ring_run().actions.copy()
    actions[5] = (1.0, 0.0, 1.0)
    assert "re-simulated" in refused(records, replace(ring_run(), actions=actions))


def test_a_wrong_reward_is_refused(records: Records) -> None:
    assert "reward" in refused(records, replace(ring_run(), reward=100.0))


def test_a_replay_of_another_engine_is_refused(records: Records) -> None:
    message = refused(records, replace(ring_run(), engine_version=ENGINE_VERSION + 1))
    assert f"version {ENGINE_VERSION + 1}" in message


def test_a_flying_start_is_refused(records: Records) -> None:
    flying = ring_run(start=Start(speed=(100.0, 100.0)))
    assert trace_replay(flying).mismatch is None
    assert "at rest" in refused(records, flying)


def test_a_replay_without_a_lap_is_refused(records: Records) -> None:
    assert "no lap" in refused(records, ring_run(60))


def test_records_of_an_older_engine_are_kept_but_not_listed(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = entered(records, ring_run())
    with monkeypatch.context() as patch:
        patch.setattr(records_module, "ENGINE_VERSION", ENGINE_VERSION + 1)
        assert records.best(RING) is None
        assert records.circuits() == ()
    assert records.best(RING) == entry


def test_reading_records_creates_no_file(records: Records, tmp_path: Path) -> None:
    assert records.best(RING) is None
    assert records.top(RING) == ()
    assert records.circuits() == ()
    records.delete(RecordEntry(1, circuit_key(RING), "", "", 1, 1, True, DATE))
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_renamed_and_reported_and_a_new_one_started(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    path.write_bytes(b"these were records once " * 500)
    records = Records(path)
    assert records.best(RING) is None
    (aside,) = (file for file in tmp_path.iterdir() if file != path)
    assert aside.read_bytes() == b"these were records once " * 500
    assert records.notice is not None
    assert aside.name in records.notice
    entry = entered(records, ring_run())
    assert Records(path).best(RING) == entry
    assert Records(path).notice is None


def test_another_programs_database_is_renamed_too(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE record (something)")
        database.commit()
    records = Records(path)
    assert records.enter(ring_run()) == records.best(RING)
    assert records.notice is not None


def rebuilt(path: Path, script: str) -> None:
    """Enter a record, then run a script on the file with the checks of SQLite off."""
    entered(Records(path), ring_run())
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.executescript(script)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
HOSTILE = {
    "view": f"""ALTER TABLE record RENAME TO old; CREATE VIEW record AS SELECT * FROM old WHERE ({ENDLESS}) > 0""",
    "trigger": "CREATE TRIGGER added AFTER INSERT ON record BEGIN DELETE FROM record; END",
    "generated column": "ALTER TABLE record ADD COLUMN extra AS (hex(zeroblob(100000000)))",
    "expression in a default": """UPDATE sqlite_schema SET sql = replace(sql, 'driver TEXT NOT NULL',
        'driver TEXT NOT NULL CHECK (length(hex(zeroblob(400000000))) > 1)') WHERE name = 'record'""",
    "other table": "CREATE TABLE more (a)",
    "large name": "UPDATE record SET driver = CAST(zeroblob(100000000) AS TEXT)",
    "large replay": "UPDATE record SET replay = zeroblob(100000000), checked = 0",
}


@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE)
def test_only_plain_tables_are_read_within_limits_of_size_and_time(tmp_path: Path, script: str) -> None:
    path = tmp_path / "records.db"
    rebuilt(path, script)
    started = time.process_time()
    records = Records(path)
    assert records.top(RING) == ()
    assert time.process_time() - started < 2.0
    assert records.notice is not None
    assert "damaged" in records.notice
    assert len(list(tmp_path.glob("records-damaged-*"))) == 1
    entered(records, ring_run())


def test_long_records_of_an_earlier_version_are_checked_a_few_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    hour = replay_to_bytes(replace(ring_run(), actions=np.tile(ring_run().actions, (308, 1)), laps=()))
    entered(Records(path), ring_run())
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        columns = "engine, circuit_id, fingerprint, circuit_name, driver, best_lap, laps, clean, date"
        for number in range(20):
            database.execute(
                f"INSERT INTO record ({columns}, digest, replay) SELECT {columns}, ?, ? FROM record LIMIT 1",
                (str(number), hour),
            )
    started = time.process_time()
    assert len(Records(path).top(RING)) == 10
    assert time.process_time() - started < 4.0
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert 0 < database.execute("SELECT count(*) FROM record WHERE checked = 0").fetchone()[0] < 20


def test_a_file_beyond_the_maximum_size_is_renamed(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    entered(Records(path), ring_run())
    with path.open("r+b") as file:
        file.truncate(records_module.MAX_FILE_SIZE + 1)
    records = Records(path)
    assert records.top(RING) == ()
    assert records.notice is not None


def test_reading_ends_at_its_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records.db"
    entered(Records(path), ring_run())
    monkeypatch.setattr(records_module, "TIME_LIMIT", 0.0)
    monkeypatch.setattr(records_module, "INSTRUCTIONS_PER_CHECK", 1)
    assert "took more than" in failure(Records(path))
    assert path.exists()


def test_a_record_of_a_renamed_file_is_not_taken_for_another(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    old = entered(Records(path), ring_run())
    path.write_bytes(b"damaged " * 1000)
    records = Records(path)
    new = entered(records, replace(ring_run(), date=LATER))
    assert new.number == old.number
    with pytest.raises(RecordError, match="no longer exists"):
        records.replay_of(old)


@given(st.data())
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_with_changed_bytes_has_records_or_raises_a_racer_error(tmp_path: Path, data: st.DataObject) -> None:
    """Only a RacerError is raised, and the next replay can be entered."""
    for old in tmp_path.iterdir():
        old.unlink()
    path = tmp_path / "records.db"
    entered(Records(path), ring_run())
    content = bytearray(path.read_bytes())
    head = st.integers(0, 200) | st.integers(0, len(content) - 1)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(head)] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) // 2, 100]))])
    records = Records(path)
    with contextlib.suppress(RacerError):
        for key in records.circuits():
            for entry in records.top(key):
                records.replay_of(entry)
    if "newer" not in failure(records):
        assert records.enter(ring_run(throttle=0.5)) is not None


def failure(records: Records) -> str:
    try:
        records.circuits()
    except RecordError as error:
        return str(error)
    return ""


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    entered(Records(path), ring_run())
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(RecordError, match="newer racer-viewer"):
        Records(path).best(RING)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_older_file_is_migrated_with_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records.db"
    entry = entered(Records(path), ring_run())
    added = ("ALTER TABLE record ADD COLUMN weather TEXT NOT NULL DEFAULT 'dry'",)
    monkeypatch.setattr(records_module, "MIGRATIONS", (*records_module.MIGRATIONS, added))
    assert Records(path).top(RING) == (entry,)
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT weather FROM record").fetchall() == [("dry",)]
        assert database.execute("PRAGMA user_version").fetchone() == (len(records_module.MIGRATIONS),)


def test_a_folder_that_cannot_be_created_is_a_record_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RecordError, match=r"records in .*records\.db"):
        Records(tmp_path / "file" / "records.db").enter(ring_run())
    assert Records(tmp_path / "file" / "records.db").best(RING) is None


def test_a_folder_in_place_of_the_file_is_a_record_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="unable to open"):
        Records(tmp_path).enter(ring_run())


@contextlib.contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """Let writes beyond this file size fail, as on a full disk [bytes]."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_full_disk_leaves_existing_records_unchanged(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.db")
    entry = entered(records, ring_run())
    with no_file_grows_beyond((tmp_path / "records.db").stat().st_size), pytest.raises(RecordError, match="records in"):
        records.enter(replace(ring_run(), date=LATER))
    assert records.top(RING) == (entry,)
    assert records.notice is None
    entered(records, replace(ring_run(), date=LATER))


def test_a_lap_earns_the_best_medal_that_it_reaches() -> None:
    circuit = Circuit("Medals", RING.control_points, medals=Medals(10.0, 12.0, 15.0))
    times = {600: "gold", 601: "silver", 720: "silver", 721: "bronze", 900: "bronze", 901: None}
    assert {ticks: medal_for(circuit, ticks) for ticks in times} == times
    assert medal_for(RING, 1) is None


def test_keys_of_bundled_circuits_differ() -> None:
    keys: set[CircuitKey] = {circuit_key(circuit) for circuit in circuits()}
    assert len(keys) == len({key.fingerprint for key in keys}) == len(circuits())


def test_records_of_earlier_versions_that_were_not_clean_are_marked_and_count_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    dirty, mixed = (weaving_run(ticks) for ticks in (350, 900))
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(records_module.MIGRATIONS[0][0])
        database.execute(records_module.MIGRATIONS[0][1])
        database.execute("PRAGMA user_version = 1")
        for replay, digest in ((dirty, "a"), (mixed, "b")):
            key = circuit_key(RING)
            database.execute(
                "INSERT INTO record (circuit_id, fingerprint, circuit_name, driver, best_lap, laps, clean, date,"
                " engine, digest, replay) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
                (key.id, key.fingerprint, "Ring", "Anna", min(replay.laps), len(replay.laps), DATE.isoformat(),
                 ENGINE_VERSION, digest, replay_to_bytes(replay)),
            )  # fmt: skip
    records = Records(path)
    first, second = records.top(RING)
    clean = min(lap.ticks for lap in trace_replay(mixed).laps if lap.clean)
    assert (first.clean, first.best_lap) == (True, clean), "its fastest clean lap counts"
    assert (second.clean, second.best_lap) == (False, min(dirty.laps))
    assert records.best(RING) == first
    with pytest.raises(RecordError, match="no clean lap was finished"):
        records.enter(dirty)
