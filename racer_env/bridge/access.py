"""Who may connect to a bridge server."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from racer_env.errors import BridgeError

Refusal = tuple[HTTPStatus, str]


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach a host name or address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Access:
    """Programs on this machine may connect; anyone else needs the token, and pages in a browser may not at all.

    A browser tells which page a connection is for, in `Origin`, and lets any page connect to anything. Other programs
    send no Origin, or the address of the server itself.
    """

    def __init__(self, host: str, token: str | None) -> None:
        if not is_loopback(host) and not token:
            raise BridgeError(f"{host} can be reached by others: choose a token for them, --token SECRET")
        self._token = _bytes(token) if token else None

    def refusal(self, target: str, headers: Mapping[str, str]) -> Refusal | None:
        """Why a request to upgrade is refused, with its HTTP status; None to let it in."""
        path, _, query = target.partition("?")
        if path != "/":
            return HTTPStatus.NOT_FOUND, "the bridge is at /"
        if not self._is_own_origin(headers):
            return HTTPStatus.FORBIDDEN, "pages of other origins may not use the bridge"
        if self._token is not None and not self._has_token(query, headers):
            return HTTPStatus.UNAUTHORIZED, "this bridge needs its token: as a bearer in Authorization, or ?token="
        return None

    def _is_own_origin(self, headers: Mapping[str, str]) -> bool:
        origin = headers.get("Origin")
        if origin is None:
            return True
        try:
            url, host = urlsplit(origin), urlsplit("//" + headers.get("Host", ""))
            same = bool(url.hostname) and (url.hostname, url.port) == (host.hostname, host.port)
        except ValueError:
            return False
        # A name that someone else's DNS points at this machine is no loopback name: a token must do there.
        return same and (self._token is not None or is_loopback(url.hostname or ""))

    def _has_token(self, query: str, headers: Mapping[str, str]) -> bool:
        assert self._token is not None
        scheme, _, bearer = headers.get("Authorization", "").partition(" ")
        offered = bearer.strip() if scheme.lower() == "bearer" else parse_qs(query).get("token", [""])[0]
        return hmac.compare_digest(_bytes(offered), self._token)


def _bytes(secret: str) -> bytes:
    """As it was typed or sent, whether that was UTF-8 or not."""
    return secret.encode("utf-8", "surrogateescape")
