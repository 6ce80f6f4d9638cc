"""Reading of untrusted files: bounded file and zip reads, and the error that all agent readers raise.

Every zip member is measured before it is unpacked.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from pathlib import Path

from racer_env.errors import RacerError, os_reason

MAX_SHOWN_LENGTH = 80
"""Maximum length of text from a file in an error message."""


class AgentError(RacerError):
    """A model or its statistics cannot be used; the text says why and what is supported."""


def shown(value: object) -> str:
    """Quote text from a file for a message, shortened and without control characters; name the type of other values."""
    plain = value if isinstance(value, str) else type(value).__name__
    return repr(plain if len(plain) <= MAX_SHOWN_LENGTH else plain[: MAX_SHOWN_LENGTH - 1] + "…")


MAX_FILE_BYTES = 128 * 2**20
"""Maximum size of a model file [bytes]; SAC with three layers of 1024 and its optimisers has 95 MiB."""
MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES = 64 * 2**20
"""Maximum size of an unpacked member [bytes]; a policy of SAC with three layers of 1024 has 42 MiB."""
MAX_RATIO = 100
"""Maximum ratio of unpacked to packed size; learned weights are hardly compressible."""
RATIO_FREE_BYTES = 2**20
"""Size up to which members may have any ratio [bytes]."""

CENTRAL_ENTRY = b"PK\x01\x02"
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, LookupError, OverflowError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


def read_file(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file; raise AgentError if it is larger than the limit [bytes]."""
    check_is_file(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise AgentError(f"is larger than {limit // 2**20} MiB, which is the limit")
            return file.read(size)
    except (OSError, ValueError) as error:
        raise AgentError(f"cannot be read: {os_reason(error)}") from error


def check_is_file(path: Path) -> None:
    """Raise AgentError for a folder and for a file that does not exist."""
    if not os.path.isfile(path):
        raise AgentError("is a folder, not a file" if os.path.isdir(path) else "there is no such file")


class Archive:
    """A zip file in memory. Raises AgentError if any member is too large or a zip bomb."""

    def __init__(self, data: bytes) -> None:
        if data.count(CENTRAL_ENTRY) > MAX_MEMBERS:
            raise AgentError(f"is a zip file of more than {MAX_MEMBERS} members")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _ZIP_ERRORS as error:
            hint = "is a damaged or truncated zip file" if data[:2] == b"PK" else "is not a zip file"
            raise AgentError(f"{hint} ({shown(str(error))})") from error
        members = self._zip.infolist()
        if members and min(member.header_offset for member in members) != 0:
            raise AgentError("is a damaged or truncated zip file (it begins with something else)")
        for member in members:
            _check_size(member)

    @property
    def names(self) -> list[str]:
        return self._zip.namelist()

    def read(self, name: str, limit: int = MAX_MEMBER_BYTES) -> bytes:
        """Read a member; raise AgentError if it is missing or larger than the limit [bytes]."""
        try:
            member = self._zip.getinfo(name)
        except KeyError:
            raise AgentError(f"has no member {shown(name)}") from None
        if member.file_size > limit:
            raise AgentError(f"its member {shown(name)} is larger than {limit // 2**20} MiB, which is the limit")
        if member.compress_type not in PACKINGS:
            raise AgentError(f"its member {shown(name)} is packed in an unusual way (method {member.compress_type})")
        try:
            with self._zip.open(member) as file:
                data = file.read(member.file_size)
                file.read(1)
        except _ZIP_ERRORS as error:
            raise AgentError(f"its member {shown(name)} is damaged or truncated ({shown(str(error))})") from error
        if len(data) != member.file_size:
            raise AgentError(f"its member {shown(name)} is damaged or truncated")
        return data


def _check_size(member: zipfile.ZipInfo) -> None:
    size, packed = member.file_size, member.compress_size
    if size > MAX_MEMBER_BYTES:
        raise AgentError(
            f"its member {shown(member.filename)} would unpack to {size // 2**20} MiB; "
            f"the limit is {MAX_MEMBER_BYTES // 2**20} MiB"
        )
    if size > RATIO_FREE_BYTES and size > MAX_RATIO * packed:
        raise AgentError(
            f"its member {shown(member.filename)} unpacks to {size // max(packed, 1)} times its size: a zip bomb"
        )
