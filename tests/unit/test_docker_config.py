"""Docker's configuration formats, as people and tools write them."""

from __future__ import annotations

import base64
import json

import pytest
from nebula.credentials.docker_config import BrokenDockerConfigError, DockerEntry, parse_docker_config
from nebula.credentials.matching import matching_keys


def _auth(text: str, *, padded: bool = True) -> str:
    encoded = base64.b64encode(text.encode()).decode()
    return encoded if padded else encoded.rstrip("=")


def _one(entry: object, **around: object) -> DockerEntry:
    config = parse_docker_config(json.dumps({"auths": {"r.io": entry}, **around}).encode())
    (only,) = config.entries
    return only


def _pair(entry: DockerEntry) -> tuple[str, str]:
    assert entry.username is not None
    assert entry.password is not None
    return entry.username.get_secret_value(), entry.password.get_secret_value()


def test_user_and_password_are_read() -> None:
    assert _pair(_one({"username": "u", "password": "p", "email": "e@example.com"})) == ("u", "p")


@pytest.mark.parametrize("padded", [True, False])
def test_auth_beats_user_and_password_padded_or_not(padded: bool) -> None:
    entry = _one({"username": "x", "password": "y", "auth": _auth("who:pass:word", padded=padded)})
    assert _pair(entry) == ("who", "pass:word")


def test_half_a_surrogate_pair_is_read_as_a_kubelet_reads_it() -> None:
    assert _pair(_one({"username": "\ud800u", "password": "p\udfff"})) == ("\ufffdu", "p\ufffd")
    assert _pair(_one({"username": "\U0001f511", "password": "pä"})) == ("\U0001f511", "pä")


def test_half_a_surrogate_pair_in_a_registry_is_some_other_registry() -> None:
    config = parse_docker_config(rb'{"auths": {"r.io/\ud800": {}}, "credHelpers": {"\udfff": "x"}}')
    assert [entry.key for entry in config.entries] == ["r.io/\ufffd"]
    assert matching_keys([*config.helpers, "r.io/\ufffd", "r.io"], "r.io/app") == ("r.io",)


def test_auth_may_be_broken_into_lines() -> None:
    text = base64.encodebytes(b"user:" + b"p" * 100).decode()
    assert text.count("\n") > 1
    assert _pair(_one({"auth": text})) == ("user", "p" * 100)


@pytest.mark.parametrize(
    ("entry", "around", "why"),
    [
        ({"identitytoken": "t"}, {}, "identitytoken"),
        ({"registrytoken": "t"}, {}, "registrytoken"),
        ({"auth": _auth("00000000-0000-0000-0000-000000000000:"), "identitytoken": "t"}, {}, "identitytoken"),
        ({}, {"credsStore": "desktop"}, "credsStore"),
        ({}, {}, "no user and password"),
        ({"username": "u"}, {}, "no user and password"),
        (None, {}, "no user and password"),
    ],
)
def test_what_cannot_be_lent_says_why(entry: object, around: dict[str, object], why: str) -> None:
    found = _one(entry, **around)
    assert found.username is None
    assert why in found.unusable


def test_a_password_beside_a_token_is_used_as_a_kubelet_does() -> None:
    assert _pair(_one({"username": "u", "password": "p", "identitytoken": "t"})) == ("u", "p")


def test_the_legacy_format_is_the_inner_map() -> None:
    config = parse_docker_config(json.dumps({"r.io": {"username": "u", "password": "p"}}).encode(), legacy=True)
    assert [entry.key for entry in config.entries] == ["r.io"]


def test_of_two_spellings_the_normal_one_comes_first() -> None:
    auths = {
        "https://r.io/v1/": {"username": "u", "password": "stale"},
        "r.io": {"username": "u", "password": "fresh"},
        "http://r.io": {"username": "u", "password": "older"},
    }
    config = parse_docker_config(json.dumps({"auths": auths}).encode())
    assert [_pair(entry)[1] for entry in config.entries] == ["fresh", "stale", "older"]
    assert {entry.key for entry in config.entries} == {"r.io"}


def test_helpers_are_read_by_registry() -> None:
    config = parse_docker_config(b'{"credHelpers": {"https://r.io/": "ecr-login"}, "credsStore": "pass"}')
    assert (dict(config.helpers), config.store, config.entries) == ({"r.io": "ecr-login"}, "pass", ())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"auths": []}',
        b'{"auths": {"r.io": "CANARY"}}',
        b'{"auths": {"r.io": {"username": 7, "password": "CANARY"}}}',
        b'{"auths": {"r.io": {"auth": "CANARY!!"}}}',
        b'{"auths": {"r.io": {"auth": "Q0FOQVJZ"}}}',
        b'{"auths": {"r.io": {"auth": "/////w=="}}}',
        b'{"auths": {"r.io": {"auth": "\xc3\xa9"}}}',
        b'{"auths": {"good.io": {"username": "u", "password": "p"}, "r.io": {"password": []}}}',
        b'{"credHelpers": {"r.io": {}}}',
        b'{"credsStore": 1}',
        b"[" * 200_000,
    ],
)
def test_a_broken_configuration_fails_as_a_whole_and_shows_nothing(text: bytes) -> None:
    with pytest.raises(BrokenDockerConfigError) as caught:
        parse_docker_config(text)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "an error of decoding holds what it choked on"


def test_no_secret_shows_in_a_repr() -> None:
    config = parse_docker_config(b'{"auths": {"r.io": {"username": "CANARY-U", "password": "CANARY-P"}}}')
    assert "CANARY" not in repr(config)
