"""Nothing in a file is executed: payloads that work with Python's own unpickler do nothing here."""

import base64
import copyreg
import io
import json
import os
import pickle
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from racer_viewer.agents import AgentError, load_agent, load_stats
from tests.agents.models import some_observations, trained
from tests.agents.zips import description, pack, rewritten, tensors, unpack

EXTENSION_CODE = 240


class Armed:
    """Creates a file when it gets its state."""

    def __setstate__(self, state: str) -> None:
        Path(state).touch()


class Reducing:
    """Pickles to a call of os.system, inside whatever it is a part of."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def payloads(marker: Path) -> dict[str, bytes]:
    """Pickles that create the marker, one for each way to make an unpickler call something."""
    command, module = text(f"touch {marker}"), Armed.__module__.encode()
    memmap = text(str(marker)) + text("u1") + text("w+") + b"K\x00" + b"K\x01\x85"
    return {
        "reduce of a global": b"\x80\x02cos\nsystem\n" + command + b"\x85R.",
        "reduce of a stack global": b"\x80\x04" + text("os") + text("system") + b"\x93" + command + b"\x85R.",
        "inst": b"(" + command + b"ios\nsystem\n.",
        "obj": b"(cos\nsystem\n" + command + b"o.",
        "newobj": b"\x80\x02cnumpy\nmemmap\n(" + memmap + b"t\x81.",
        "newobj_ex": b"\x80\x04cnumpy\nmemmap\n(" + memmap + b"t}\x92.",
        "build with a state": b"\x80\x02c" + module + b"\nArmed\n)\x81" + text(str(marker)) + b"b.",
        "extension code": b"\x80\x02\x82" + bytes([EXTENSION_CODE]) + command + b"\x85R.",
        "protocol 0": b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR.",
        "eval of a builtin": b"\x80\x02cbuiltins\neval\n" + text(f"open({str(marker)!r}, 'w')") + b"\x85R.",
        "attribute of an attribute": b"\x80\x04" + text("pathlib") + text("Path.touch") + b"\x93cpathlib\nPosixPath\n"
        + text(str(marker)) + b"\x85R\x85R.",
        "after a name that is allowed": b"\x80\x02ccollections\nOrderedDict\n)R" + text("a") + b"cos\nsystem\n"
        + command + b"\x85Rs.",
    }  # fmt: skip


KINDS = list(payloads(Path("x")))


@pytest.fixture(autouse=True)
def extension() -> Iterator[None]:
    copyreg.add_extension("os", "system", EXTENSION_CODE)
    yield
    copyreg.remove_extension("os", "system", EXTENSION_CODE)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "executed"


@pytest.fixture
def model(folder: Path) -> Path:
    return trained("ppo-relu", folder).path


def assert_refused(marker: Path, load: Callable[[], Any]) -> None:
    with pytest.raises(AgentError):
        load()
    assert not marker.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_the_payloads_are_real(kind: str, marker: Path) -> None:
    pickle.loads(payloads(marker)[kind])
    assert marker.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_instead_of_the_tensors_is_refused(kind: str, marker: Path, model: Path, tmp_path: Path) -> None:
    payload = payloads(marker)[kind]
    evil = rewritten(model, tmp_path / "evil.zip", policy_pth=tensors(pickle=payload))
    assert_refused(marker, lambda: load_agent(evil))
    legacy = rewritten(model, tmp_path / "legacy.zip", policy_pth=payload)
    assert_refused(marker, lambda: load_agent(legacy))


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_among_the_tensors_is_refused(kind: str, marker: Path, model: Path, tmp_path: Path) -> None:
    payload = payloads(marker)[kind].removeprefix(b"\x80\x02").removeprefix(b"\x80\x04")

    def append(data: bytes) -> bytes:
        """The state dict gets one more item."""
        return data[:-1] + text("evil") + payload[:-1] + b"s."

    evil = rewritten(model, tmp_path / "evil.zip", policy_pth=tensors(pickle=append))
    assert_refused(marker, lambda: load_agent(evil))


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_in_any_other_member_is_not_even_read(kind: str, marker: Path, model: Path, tmp_path: Path) -> None:
    payload = payloads(marker)[kind]
    members = unpack(model.read_bytes())
    torch_file = pack(unpack(members["policy.pth"]) | {"archive/data.pkl": payload})
    for name in members:
        if name not in ("data", "policy.pth"):
            members[name] = torch_file if name.endswith(".pth") else payload
    members |= {"__init__.py": b"import os", "../outside": payload, "policy.pkl": payload}
    evil = tmp_path / "evil.zip"
    evil.write_bytes(pack(members))
    observations = some_observations(50)
    stats = model.with_name(f"{model.stem}_vecnormalize.pkl")
    expected = load_agent(model).act(observations)
    np.testing.assert_array_equal(load_agent(evil, stats=stats).act(observations), expected)
    assert not marker.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_pickles_in_the_description_are_not_decoded(kind: str, marker: Path, model: Path, tmp_path: Path) -> None:
    encoded = base64.b64encode(payloads(marker)[kind]).decode()
    poisoned = []

    def poison(fields: dict[str, Any]) -> None:
        for name, field in fields.items():
            if isinstance(field, dict):
                field[":serialized:"] = encoded
                poisoned.append(name)
        fields["evil"] = {":type:": "<class 'evil'>", ":serialized:": encoded}

    evil = rewritten(model, tmp_path / "evil.zip", data=description(poison))
    assert {"policy_class", "policy_kwargs", "action_space", "observation_space", "lr_schedule"} <= set(poisoned)
    assert load_agent(evil).info.algorithm == "PPO"
    assert not marker.exists()


def test_stable_baselines3_itself_runs_that_payload(marker: Path, model: Path, tmp_path: Path) -> None:
    encoded = base64.b64encode(payloads(marker)["reduce of a global"]).decode()
    evil = rewritten(
        model, tmp_path / "evil.zip", data=description(lambda fields: fields.update(evil={":serialized:": encoded}))
    )
    from stable_baselines3 import PPO

    PPO.load(evil, device="cpu")
    assert marker.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_instead_of_the_description_is_refused(kind: str, marker: Path, model: Path, tmp_path: Path) -> None:
    evil = rewritten(model, tmp_path / "evil.zip", data=payloads(marker)[kind])
    assert_refused(marker, lambda: load_agent(evil))


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_instead_of_the_statistics_is_refused(kind: str, marker: Path, model: Path, tmp_path: Path) -> None:
    stats = tmp_path / "vecnormalize.pkl"
    stats.write_bytes(payloads(marker)[kind])
    assert_refused(marker, lambda: load_stats(stats))
    assert_refused(marker, lambda: load_agent(model, stats=stats))
    (tmp_path / "beside.zip").write_bytes(model.read_bytes())
    assert_refused(marker, lambda: load_agent(tmp_path / "beside.zip"))


@pytest.mark.parametrize("field", ["obs_rms", "norm_obs", "metadata", "clip_obs", "evil"])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_payload_within_the_statistics_is_refused(
    field: str, protocol: int, marker: Path, folder: Path, tmp_path: Path
) -> None:
    vec_normalize = trained("ppo-relu", folder).vec_normalize
    evil = object.__new__(type(vec_normalize))
    evil.__dict__.update(vars(vec_normalize) | {field: Reducing(f"touch {marker}")})
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(evil, protocol))
    with pytest.raises(AgentError, match=r"system|_codecs"):
        load_stats(tmp_path / "x.pkl")
    assert not marker.exists()
    pickle.loads((tmp_path / "x.pkl").read_bytes())
    assert marker.exists()


def test_a_payload_in_an_object_array_is_refused(marker: Path, tmp_path: Path) -> None:
    evil = np.array([Reducing(f"touch {marker}")], dtype=object)
    np.savez(tmp_path / "x.npz", obs_mean=evil, obs_var=evil)
    assert_refused(marker, lambda: load_stats(tmp_path / "x.npz"))
    np.load(tmp_path / "x.npz", allow_pickle=True)["obs_mean"]
    assert marker.exists()


def test_what_is_refused_is_named(model: Path, marker: Path, tmp_path: Path) -> None:
    for kind, name in (("reduce of a stack global", r"os\.system"), ("inst", "INST"), ("extension code", "EXT1")):
        payload = payloads(marker)[kind]
        (tmp_path / "x.pkl").write_bytes(payload)
        with pytest.raises(AgentError, match=f"x.pkl: holds a pickle .* {name}|'{name}'"):
            load_stats(tmp_path / "x.pkl")
        evil = rewritten(model, tmp_path / "evil.zip", policy_pth=tensors(pickle=payload))
        with pytest.raises(AgentError, match=f"evil.zip: policy.pth: .*{name}"):
            load_agent(evil)


def test_text_from_a_file_cannot_steer_the_terminal(model: Path, tmp_path: Path) -> None:
    evil = "\x1b[2J" + "x" * 10_000
    path = rewritten(
        model, tmp_path / "a.zip", data=description(lambda fields: fields["policy_class"].update(__module__=evil))
    )
    with pytest.raises(AgentError) as refusal:
        load_agent(path)
    assert "\x1b" not in str(refusal.value)
    assert len(str(refusal.value)) < 600


def packed_zeros(name: str, size: int) -> bytes:
    return pack({name: bytes(size)}, zipfile.ZIP_DEFLATED)


def assert_refused_cheaply(path: Path, message: str, load: Callable[[Path], Any] = load_agent) -> None:
    """Before anything large was unpacked."""
    tracemalloc.start()
    started = time.perf_counter()
    with pytest.raises(AgentError, match=message):
        load(path)
    seconds, peak = time.perf_counter() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 2.0
    assert peak < 3 * path.stat().st_size + 2 * 2**20


def test_a_member_that_unpacks_to_a_thousand_times_its_size_is_a_bomb(model: Path, tmp_path: Path) -> None:
    for name in ("policy.pth", "data", "system_info.txt"):
        members = unpack(model.read_bytes())
        members[name] = bytes(8 * 2**20)
        (tmp_path / "bomb.zip").write_bytes(pack(members, zipfile.ZIP_DEFLATED))
        assert_refused_cheaply(tmp_path / "bomb.zip", f"{name}.* a zip bomb")


def test_a_bomb_within_the_tensors_is_refused(model: Path, tmp_path: Path) -> None:
    for name in ("archive/data.pkl", "archive/data/1"):
        inner = io.BytesIO(unpack(model.read_bytes())["policy.pth"])
        members = unpack(inner.getvalue()) | {name: bytes(8 * 2**20)}
        bomb = rewritten(model, tmp_path / "bomb.zip", policy_pth=pack(members, zipfile.ZIP_DEFLATED))
        assert_refused_cheaply(bomb, f"policy.pth: its member .*{name}.* a zip bomb")


def test_a_bomb_of_statistics_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(packed_zeros("obs_mean.npy", 8 * 2**20))
    assert_refused_cheaply(tmp_path / "x.npz", "a zip bomb", load_stats)


def test_a_member_that_claims_to_be_huge_is_refused(model: Path, tmp_path: Path) -> None:
    data = bytearray(model.read_bytes())
    entry = data.rindex(b"policy.pth") - 46
    assert data[entry : entry + 4] == b"PK\x01\x02"
    data[entry + 20 : entry + 28] = struct.pack("<II", 2**31 - 1, 2**31 - 1)
    (tmp_path / "huge.zip").write_bytes(data)
    assert_refused_cheaply(tmp_path / "huge.zip", "would unpack to 2047 MiB; the limit is 64 MiB")


def test_a_member_that_claims_to_be_small_is_not_read_beyond_that(tmp_path: Path) -> None:
    data = bytearray(pack({"policy.pth": b"x", "data": bytes(8 * 2**20)}, zipfile.ZIP_DEFLATED))
    entry = data.rindex(b"data") - 46
    data[entry + 24 : entry + 28] = struct.pack("<I", 1000)
    (tmp_path / "liar.zip").write_bytes(data)
    assert_refused_cheaply(tmp_path / "liar.zip", "damaged")


def test_a_zip_of_very_many_members_is_refused(tmp_path: Path) -> None:
    (tmp_path / "many.zip").write_bytes(pack({str(number): b"" for number in range(12_000)}))
    assert_refused_cheaply(tmp_path / "many.zip", "more than 10000 members")


def test_an_array_that_claims_to_be_huge_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"descr": "<f8", "fortran_order": False, "shape": "X"}).replace('"X"', "(10**11,)")
    header = header.replace("false", "False").replace("10**11", "100000000000").ljust(117) + "\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    (tmp_path / "x.npz").write_bytes(pack({"obs_mean.npy": array}))
    assert_refused_cheaply(tmp_path / "x.npz", "not of doubles, or is damaged", load_stats)


@pytest.mark.parametrize(
    ("name", "bomb"),
    [
        ("a memo number of two thousand million", b"\x80\x02Nr\xff\xff\xff\x7f."),
        ("a text of a million million bytes", b"\x80\x04\x8d" + struct.pack("<Q", 10**12) + b"."),
        ("bytes of a million million bytes", b"\x80\x04\x8e" + struct.pack("<Q", 10**12) + b"."),
        (
            "a key of tuples of tuples of tuples",
            b"\x80\x02}q\xffK\x01q\x00"
            + b"".join(b"h%ch%c\x86q%c" % (level, level, level + 1) for level in range(200))
            + b"h\xffh\xc8Ns.",
        ),
    ],
)
def test_small_pickles_that_would_take_all_memory_or_all_day_do_not(name: str, bomb: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.pkl").write_bytes(bomb)
    assert_refused_cheaply(tmp_path / "x.pkl", "pickle", load_stats)


def test_a_tensor_cannot_be_larger_than_its_storage(model: Path, tmp_path: Path) -> None:
    bias = text("mlp_extractor.policy_net.0.bias")
    start = unpack(unpack(model.read_bytes())["policy.pth"])["archive/data.pkl"]
    at = start.index(bias)
    for stride in (b"K\x00", b"K\x01"):
        huge = start[:at] + start[at:].replace(b"K \x85", b"J\xff\xff\xff\x7f\x85", 1)
        huge = huge[:at] + huge[at:].replace(b"K\x01\x85", stride + b"\x85", 1)
        assert huge != start
        path = rewritten(model, tmp_path / "huge.zip", policy_pth=tensors(pickle=huge))
        assert_refused_cheaply(path, "larger than its storage")
