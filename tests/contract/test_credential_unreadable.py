"""What every credentials ledger does with a row that only a newer release can read: the others go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from nebula.domain.credential import Credential, CredentialKey
from nebula.domain.unreadable import UnreadableCredential, UnreadableCredentialError
from nebula.stores.credentials import CredentialConflictError, CredentialStore
from nebula.stores.memory_credentials import MemoryCredentialStore

from tests.support.claims import NOW

MakeNewer = Callable[[CredentialKey], UnreadableCredential]


@pytest.fixture
def make_newer(credentials: CredentialStore, request: pytest.FixtureRequest) -> MakeNewer:
    """Turns a row into one that a newer release wrote: a state of its own. Returns what is told of it."""

    def told(key: CredentialKey) -> UnreadableCredential:
        row = UnreadableCredential(line=key.line, generation=key.generation, problem="state")
        if isinstance(credentials, MemoryCredentialStore):
            credentials.hold(row)
            return row
        request.getfixturevalue("dynamodb").update_item(
            TableName="credentials",
            Key={"credential": {"S": key.line}, "generation": {"N": str(key.generation)}},
            UpdateExpression="SET #state = :new",
            ExpressionAttributeNames={"#state": "state"},
            ExpressionAttributeValues={":new": {"S": "Lost"}},
        )
        return row

    return told


def credential(fingerprint: str = "abc", generation: int = 1) -> Credential:
    key = CredentialKey(provider="runpod", account="acct", fingerprint=fingerprint, generation=generation)
    return Credential(key=key, registry="ghcr.io/acme", created_at=NOW, last_used_at=NOW)


def test_a_list_goes_on_without_it_and_tells_of_it(credentials: CredentialStore, make_newer: MakeNewer) -> None:
    others = {str(credentials.create(credential(name)).key) for name in ("aaa", "ccc")}
    newer = credentials.create(credential("bbb"))
    told = make_newer(newer.key)
    for include_retired in (False, True):
        unreadable: list[UnreadableCredential] = []
        rows = credentials.all(include_retired=include_retired, unreadable=unreadable)
        assert {str(row.key) for row in rows} == others
        assert unreadable == [told]
    assert (told.key, told.provider, told.object_name) == (str(newer.key), "runpod", newer.key.object_name)


def test_whoever_does_not_ask_for_such_rows_is_not_given_the_rest(
    credentials: CredentialStore, make_newer: MakeNewer
) -> None:
    credentials.create(credential("aaa"))
    make_newer(credentials.create(credential("bbb")).key)
    with pytest.raises(UnreadableCredentialError):
        list(credentials.all())


def test_it_is_never_taken_for_no_row(credentials: CredentialStore, make_newer: MakeNewer) -> None:
    newer = credentials.create(credential())
    told = make_newer(newer.key)
    with pytest.raises(UnreadableCredentialError, match="runpod/acct/abc/1") as raised:
        credentials.get(newer.key)
    assert raised.value.row == told


def test_the_latest_is_it_while_no_later_one_stands(credentials: CredentialStore, make_newer: MakeNewer) -> None:
    first = credentials.create(credential())
    second = credentials.create(credential(generation=2))
    told = make_newer(second.key)
    assert credentials.latest("runpod", "acct", "abc") == told
    assert credentials.get(first.key) == first
    third = credentials.create(credential(generation=3))
    assert credentials.latest("runpod", "acct", "abc") == third


def test_it_is_not_replaced(credentials: CredentialStore, make_newer: MakeNewer) -> None:
    newer = credentials.create(credential())
    told = make_newer(newer.key)
    with pytest.raises(CredentialConflictError) as created:
        credentials.create(newer)
    with pytest.raises(CredentialConflictError) as saved:
        credentials.save(newer, newer)
    assert created.value.current is saved.value.current is None
    unreadable: list[UnreadableCredential] = []
    assert list(credentials.all(unreadable=unreadable)) == []
    assert unreadable == [told]
