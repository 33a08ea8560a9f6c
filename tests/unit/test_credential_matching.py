"""Which key pulls which image: the kubelet's own rules and its corner cases."""

from __future__ import annotations

import pytest
from nebula.credentials.matching import (
    canonical_registry,
    is_ecr,
    key_matches,
    matching_keys,
    normalise_image,
    normalise_key,
)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("registry.example.com", "registry.example.com"),
        ("https://registry.example.com", "registry.example.com"),
        ("http://registry.example.com/", "registry.example.com"),
        ("https://index.docker.io/v1/", "index.docker.io"),
        ("https://registry.example.com/v2/", "registry.example.com"),
        ("https://registry.example.com/v2/team/app", "registry.example.com/team/app"),
        ("registry.example.com:443/v1/team", "registry.example.com:443/team"),
        ("registry.example.com/v1", "registry.example.com/v1"),
        ("registry.example.com/v3/", "registry.example.com/v3/"),
        ("https://who:secret@registry.example.com/team", "registry.example.com/team"),
        ("registry.example.com/team?x=1#y", "registry.example.com/team"),
        ("*.example.com", "*.example.com"),
        ("", ""),
    ],
)
def test_keys_are_normalised(written: str, key: str) -> None:
    assert normalise_key(written) == key


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("nginx:1.27", "docker.io/library/nginx"),
        ("team/app@sha256:" + "0" * 64, "docker.io/team/app"),
        ("docker.io/bash", "docker.io/library/bash"),
        ("docker.io/library/bash:5", "docker.io/library/bash"),
        ("index.docker.io/team/app", "docker.io/team/app"),
        ("localhost/app:1", "localhost/app"),
        ("localhost:5000/app:1", "localhost:5000/app"),
        ("registry.example.com:443/a/b:tag@sha256:" + "1" * 64, "registry.example.com:443/a/b"),
        ("[::1]:5000/app:2", "[::1]:5000/app"),
        ("ghcr.io/team/app", "ghcr.io/team/app"),
    ],
)
def test_images_are_normalised(image: str, name: str) -> None:
    assert normalise_image(image) == name


@pytest.mark.parametrize(
    ("key", "image", "matches"),
    [
        ("r.io", "r.io/app", True),
        ("r.io", "r.io:443/app", False),
        ("r.io:443", "r.io:443/app", True),
        ("r.io:443", "r.io/app", False),
        ("r.io/team", "r.io/team/app", True),
        ("r.io/team", "r.io/teams/app", True),
        ("r.io/team/", "r.io/teams/app", False),
        ("r.io/other", "r.io/team/app", False),
        ("r.io/*", "r.io/team/app", False),
        ("*.r.io", "eu.r.io/app", True),
        ("*.r.io", "a.eu.r.io/app", False),
        ("*.r.io", "r.io/app", False),
        ("*.*.r.io", "a.eu.r.io/app", True),
        ("e?.r.io", "eu.r.io/app", True),
        ("e?.r.io", "e.r.io/app", False),
        ("pre*fix.r.io", "prefix.r.io/app", True),
        ("*", "localhost/app", True),
        ("*", "r.io/app", False),
        ("r.io:*", "r.io:443/app", False),
        ("rxio", "r.io/app", False),
        ("r.io", "R.io/app", False),
        ("[::1]:5000", "[::1]:5000/app", True),
        ("[::1]:5000", "[::1]:5001/app", False),
        ("", "r.io/app", False),
    ],
)
def test_a_key_matches_by_port_host_globs_and_path_prefix(key: str, image: str, matches: bool) -> None:
    assert key_matches(key, image) is matches


def test_a_key_of_many_stars_is_matched_as_fast_as_any() -> None:
    """A key is anybody's text: by trying each way to share out the stars, this one would take years."""
    image = "a" * 200 + ".io/x"
    assert not key_matches("*a" * 40 + "b.io", image)
    assert key_matches("*a" * 40 + "*.io", image)


@pytest.mark.parametrize(
    ("glob", "matches"), [("[ab].io", False), ("[ab].i?", False), ("?b].io", False), ("a.io", True)]
)
def test_brackets_in_a_key_are_no_choice(glob: str, matches: bool) -> None:
    assert key_matches(glob, "a.io/x") is matches


def test_the_longest_path_comes_first_and_globs_come_last() -> None:
    keys = ["*.example.com", "eu.example.com", "eu.example.com/team", "eu.example.com/team/app", "us.example.com"]
    assert matching_keys(keys, "eu.example.com/team/app:1") == (
        "eu.example.com/team/app",
        "eu.example.com/team",
        "eu.example.com",
        "*.example.com",
    )


@pytest.mark.parametrize("image", ["nginx", "team/app", "docker.io/team/app", "index.docker.io/team/app"])
def test_docker_hub_is_served_by_the_key_that_docker_login_writes(image: str) -> None:
    assert matching_keys([normalise_key("https://index.docker.io/v1/")], image) == ("index.docker.io",)
    assert matching_keys(["docker.io"], image) == ("docker.io",)


def test_docker_hubs_own_key_serves_only_where_nothing_else_matched() -> None:
    assert matching_keys(["index.docker.io", "docker.io/team"], "team/app") == ("docker.io/team",)
    assert matching_keys(["index.docker.io"], "ghcr.io/team/app") == ()
    assert matching_keys(["registry-1.docker.io"], "nginx") == ()


def test_docker_hub_has_one_name() -> None:
    assert canonical_registry("index.docker.io") == canonical_registry("docker.io") == "docker.io"
    assert canonical_registry("r.io:443/team") == "r.io:443/team"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("123456789012.dkr.ecr.eu-central-1.amazonaws.com", True),
        ("123456789012.dkr.ecr-fips.us-east-1.amazonaws.com", True),
        ("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", True),
        ("123456789012.dkr-ecr.us-east-1.on.aws", True),
        ("123456789012.dkr.ecr.us-iso-east-1.c2s.ic.gov", True),
        ("123456789012.dkr.ecr.us-isob-east-1.sc2s.sgov.gov", True),
        ("123456789012.dkr.ecr.eu-isoe-west-1.cloud.adc-e.uk", True),
        ("123456789012.DKR.ECR.eu-central-1.AmazonAWS.com:443", True),
        ("public.ecr.aws", False),
        ("dkr.ecr.eu-central-1.amazonaws.com", False),
        ("123456789012.dkr.ecr.eu-central-1.amazonaws.com.evil.example", False),
        ("ghcr.io", False),
    ],
)
def test_private_ecr_is_known_by_its_host(host: str, expected: bool) -> None:
    assert is_ecr(host) is expected
