from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.credentials import Credentials
from nebula.clock import ManualClock
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.eks import LIFETIME, EksToken, mint

_ALLOWED = {
    "Action",
    "Version",
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-Security-Token",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
}


def _decode(token: str) -> tuple[str, str, dict[str, str]]:
    encoded = token.removeprefix("k8s-aws-v1.")
    assert "=" not in encoded
    url = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    pairs = parse_qsl(url.query, strict_parsing=True)
    assert len(pairs) == len({name.lower() for name, _ in pairs})
    return f"{url.scheme}://{url.netloc}", url.path, dict(pairs)


def test_token_passes_the_checks_of_the_authenticator() -> None:
    token = mint("prod", "eu-west-1", Credentials("AKIAEXAMPLE", "s" * 40, "t" * 900)).get_secret_value()
    server, path, query = _decode(token)
    assert token.startswith("k8s-aws-v1.")
    assert len(token) < 4096
    assert (server, path) == ("https://sts.eu-west-1.amazonaws.com", "/")
    assert set(query) == _ALLOWED
    assert query["Action"] == "GetCallerIdentity"
    assert 0 < int(query["X-Amz-Expires"]) <= 900
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"


def test_tokens_for_two_clusters_differ_only_by_what_is_signed() -> None:
    credentials = Credentials("AKIAEXAMPLE", "s" * 40)
    one, two = (mint(name, "eu-west-1", credentials).get_secret_value() for name in ("a", "b"))
    assert _decode(one)[2]["X-Amz-Signature"] != _decode(two)[2]["X-Amz-Signature"]


def test_china_has_its_own_domain() -> None:
    token = mint("a", "cn-north-1", Credentials("AKIAEXAMPLE", "s" * 40)).get_secret_value()
    assert _decode(token)[0] == "https://sts.cn-north-1.amazonaws.com.cn"


def test_i3_token_is_cached_for_its_lifetime_and_minted_anew_after_it_or_a_401() -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    used: list[str] = []

    def credentials() -> Credentials:
        used.append(f"AKIA{len(used)}")
        return Credentials(used[-1], "s" * 40)

    source = EksToken("prod", "eu-west-1", clock, credentials)
    first = source.token()
    clock.advance(LIFETIME - timedelta(seconds=1))
    assert source.token() is first
    clock.advance(timedelta(seconds=1))
    assert source.token() != first
    assert source.renew()
    source.token()
    assert used == ["AKIA0", "AKIA1", "AKIA2"]


def test_without_credentials_the_cluster_is_unknown_not_forbidden() -> None:
    source = EksToken("prod", "eu-west-1", ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), lambda: None)
    with pytest.raises(ClusterUnavailableError):
        source.token()
