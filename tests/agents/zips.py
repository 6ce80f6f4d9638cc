"""Helpers that unpack, change and pack model files."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Members = dict[str, bytes]


def unpack(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(members: Mapping[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def rewritten(source: Path, target: Path, **changes: bytes | Callable[[bytes], bytes]) -> Path:
    """Copy a model with changed members; `policy_pth` stands for policy.pth, and so on."""
    members = unpack(source.read_bytes())
    for key, change in changes.items():
        name = key.replace("_pth", ".pth")
        members[name] = change if isinstance(change, bytes) else change(members[name])
    target.write_bytes(pack(members))
    return target


def tensors(**changes: bytes | Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Return a function that changes policy.pth: `pickle` is its data.pkl, `storage_3` its data/3."""

    def change_members(data: bytes) -> bytes:
        members = unpack(data)
        for key, change in changes.items():
            name = "archive/" + {"pickle": "data.pkl"}.get(key, key.replace("storage_", "data/"))
            members[name] = change if isinstance(change, bytes) else change(members[name])
        return pack(members)

    return change_members


def description(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    """Return a function that changes the JSON of the `data` member."""

    def change_text(data: bytes) -> bytes:
        fields = json.loads(data)
        change(fields)
        return json.dumps(fields).encode()

    return change_text
