"""Whatever is in a file: it loads, or it is an AgentError, and never anything else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from racer_viewer.agents import AgentError, load_agent, load_stats, save_stats
from tests.agents.models import trained
from tests.agents.zips import pack, unpack

EXAMPLES = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
EDITS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=6)), min_size=1, max_size=4
)
MODELS = ("ppo-gsde-expln", "sac-gsde-clipped")
"""Small ones."""


@pytest.fixture
def model(folder: Path) -> Callable[[str], bytes]:
    return lambda name: trained(name, folder).path.read_bytes()


def edited(data: bytes, edits: list[tuple[float, bytes]]) -> bytes:
    """Some bytes overwritten, at places that are said as a part of the whole."""
    result = bytearray(data)
    for place, content in edits:
        at = int(place * len(data))
        result[at : at + len(content)] = content
    return bytes(result[: len(data)])


def try_agent(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    try:
        agent = load_agent(path)
    except AgentError:
        return
    with np.errstate(all="ignore"):
        assert agent.act(np.zeros(14)).shape == (3,)


def try_stats(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    try:
        load_stats(path)
    except AgentError:
        return


@EXAMPLES
@given(name=st.sampled_from(MODELS), part=st.floats(0, 1))
def test_a_model_cut_off_anywhere(name: str, part: float, model: Any, tmp_path: Path) -> None:
    data = model(name)
    try_agent(tmp_path / "a.zip", data[: int(part * len(data))])


@EXAMPLES
@given(name=st.sampled_from(MODELS), edits=EDITS)
def test_a_model_with_bytes_changed_anywhere(name: str, edits: Any, model: Any, tmp_path: Path) -> None:
    try_agent(tmp_path / "a.zip", edited(model(name), edits))


@EXAMPLES
@given(name=st.sampled_from(MODELS), edits=EDITS)
def test_a_model_with_bytes_changed_in_the_directory_of_its_zip(
    name: str, edits: Any, model: Any, tmp_path: Path
) -> None:
    data = model(name)
    start = data.rindex(b"PK\x01\x02", 0, data.rindex(b"policy.pth"))
    try_agent(tmp_path / "a.zip", data[:start] + edited(data[start:], edits))


@EXAMPLES
@given(name=st.sampled_from(MODELS), member=st.sampled_from(("data.pkl", "data/0", "data/1", "byteorder")), edits=EDITS)
def test_tensors_with_bytes_changed_and_checksums_made_right(
    name: str, member: str, edits: Any, model: Any, tmp_path: Path
) -> None:
    members = unpack(model(name))
    inner = unpack(members["policy.pth"])
    inner[f"archive/{member}"] = edited(inner[f"archive/{member}"], edits)
    try_agent(tmp_path / "a.zip", pack(members | {"policy.pth": pack(inner)}))


@EXAMPLES
@given(name=st.sampled_from(MODELS), edits=EDITS)
def test_a_description_with_bytes_changed(name: str, edits: Any, model: Any, tmp_path: Path) -> None:
    members = unpack(model(name))
    try_agent(tmp_path / "a.zip", pack(members | {"data": edited(members["data"], edits)}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@EXAMPLES
@given(
    name=st.sampled_from(MODELS),
    field=st.sampled_from(
        ("policy_class", "policy_kwargs", "action_space", "observation_space", "num_timesteps", "clip_range", "use_sde")
    ),
    inner=st.sampled_from((None, "low", "high", ":type:", "__module__", "__init__", "activation_fn", "clip_mean")),
    value=JSON,
)
def test_a_description_with_other_values(
    name: str, field: str, inner: str | None, value: Any, model: Any, tmp_path: Path
) -> None:
    members = unpack(model(name))
    fields = json.loads(members["data"])
    if inner is not None and isinstance(fields.get(field), dict):
        fields[field][inner] = value
    else:
        fields[field] = value
    try_agent(tmp_path / "a.zip", pack(members | {"data": json.dumps(fields).encode()}))


@EXAMPLES
@given(ending=st.sampled_from((".pkl", ".npz", ".json")), edits=EDITS, part=st.floats(0, 1) | st.just(1.0))
def test_statistics_with_bytes_changed_or_cut_off(
    ending: str, edits: Any, part: float, folder: Path, tmp_path: Path
) -> None:
    vec_normalize = trained(MODELS[0], folder).vec_normalize
    path = tmp_path / f"x{ending}"
    if ending == ".pkl":
        vec_normalize.save(str(path))
    else:
        save_stats(path, vec_normalize)
    data = path.read_bytes()
    try_stats(path, edited(data, edits)[: int(part * len(data))])
    if ending == ".npz":
        members = unpack(data)
        try_stats(path, pack({name: edited(content, edits) for name, content in members.items()}))


@EXAMPLES
@given(data=st.binary(max_size=200))
def test_anything_at_all(data: bytes, model: Any, tmp_path: Path) -> None:
    try_agent(tmp_path / "a.zip", data)
    for ending in (".pkl", ".npz", ".json"):
        try_stats(tmp_path / f"x{ending}", data)
    try_stats(tmp_path / "x.pkl", b"\x80\x04" + data)
