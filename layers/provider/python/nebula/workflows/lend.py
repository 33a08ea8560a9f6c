"""Lending a pull credential to a provider: row first, then the claim, then the provider (docs/credentials.md)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar
from urllib.parse import quote

from nebula.credentials.fingerprint import fingerprint_of, key_print, masked
from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.domain.unreadable import UnreadableCredential, UnreadableCredentialError
from nebula.domain.workload import PullCredential
from nebula.events.details import DetailType
from nebula.kubernetes.pull_secrets import UnsupportedPullSecretError
from nebula.providers.base import Provider, RegistryCredentials
from nebula.providers.errors import ProviderUnavailableError, RequestRefusedError
from nebula.stores.credentials import CredentialConflictError
from nebula.workflows.accounts import account_of, same_account
from nebula.workflows.credential_audit import audit
from nebula.workflows.readable import tell_unreadable_credentials
from nebula.workflows.services import Services

#: Tries of one conditional write. Every loser of a round saw somebody else's use succeed.
MAX_TRIES = 10
#: Sources kept per row, so that it stays far below DynamoDB's 400 KB; the newest are kept.
MAX_SOURCES = 500
#: The account part of a key where the provider does not tell its account.
UNKNOWN_ACCOUNT = "default"

WrittenT = TypeVar("WrittenT")

_LENDABLE = (CredentialState.ACTIVE, CredentialState.SUPERSEDED)


class CredentialExpiredError(UnsupportedPullSecretError):
    """The Secret's password is past its expiry: lending it would rent a machine that cannot pull."""


class CredentialMovedError(ProviderUnavailableError):
    """The row is being retired, or cannot be read: nothing was sent; record again, which makes the next generation."""


def key_account(provider: Provider) -> str:
    """The provider's account as a part of a credential key; ``default`` where it is not told."""
    account = provider.account()
    return quote(account, safe="") if account else UNKNOWN_ACCOUNT


def lendable(services: Services, row: Credential, account: str) -> bool:
    """Whether new Pods may use the row's object with the key of ``account``.

    Where the account is not told, another key may be of another account: what was lent with the former
    key is left to its retirement, and the next generation is made.
    """
    open_ = row.state in _LENDABLE and not row.aged_out
    return open_ and same_account(services, row.key.provider, row.lent_to, account)


def record_credential(services: Services, provider: Provider, pull: PullCredential) -> CredentialKey:
    """Make sure that the row of a credential that is about to be used stands; returns its key.

    A row that says everything already is only read: ``ensure_credential`` touches it once the claim carries its
    key. A row that is being retired is left to it, and one that cannot be read to who wrote it: the next generation
    is made. Raises CredentialExpiredError, RequestRefusedError for a provider that keeps no registry credentials, the
    provider's own errors when its account cannot be read, ValueError without a fingerprint key, and
    ``CredentialConflictError`` when the row moved ``MAX_TRIES`` times (the message comes again).
    """
    _registries(provider)
    base = CredentialKey(
        provider=provider.name,
        account=key_account(provider),
        fingerprint=fingerprint_of(services.fingerprint_key, pull),
        generation=1,
    )
    account = account_of(services, provider)
    return _persist(lambda: _record_once(services, base, pull, account)).key


def ensure_credential(services: Services, provider: Provider, key: CredentialKey, pull: PullCredential) -> str:
    """The provider's id of the credential, created there when it is missing.

    To be called after the claim carries ``key``: the row is touched here again, so that a retirement
    that had read it before the claim was written fails on its condition. Raises CredentialMovedError
    when the row is being retired or not there, and the provider's errors.
    """
    registries = _registries(provider)
    account = account_of(services, provider)
    _standing(services, key, account)
    object_id = registries.ensure_registry_credential(key.object_name, pull.username, pull.password)
    if not object_id:
        raise ProviderUnavailableError(f"{provider.name} answered without an id for credential {key.object_name}")
    previous, written = _persist(lambda: _touch_once(services, key, object_id, account))
    if previous.provider_id != object_id:
        reason = "first use" if previous.provider_id is None else "made again: the object was not there any more"
        audit(services, DetailType.CREDENTIAL_CREATED, written, reason)
    return object_id


def forget_credential(services: Services, provider: Provider, key: CredentialKey) -> None:
    """Drop the provider's cached id, after a create that used it failed; the next ensure looks again."""
    _registries(provider).forget_registry_credential(key.object_name)
    services.telemetry.info("credential id forgotten", credential_key=str(key), provider=provider.name)


def _record_once(services: Services, base: CredentialKey, pull: PullCredential, account: str) -> Credential:
    now = services.clock.now()
    latest = services.credentials.latest(base.provider, base.account, base.fingerprint)
    if isinstance(latest, UnreadableCredential):
        tell_unreadable_credentials(services, [latest])
        generation, latest = latest.generation + 1, None
    else:
        generation = latest.key.generation + 1 if latest is not None else 1
    expires_at = min(filter(None, (pull.expires_at, latest.expires_at if latest else None)), default=None)
    if expires_at is not None and expires_at <= now:
        raise CredentialExpiredError(
            f"the password in Secret {pull.source} for {pull.registry} expired at {expires_at:%Y-%m-%dT%H:%M:%SZ}"
        )
    if latest is not None and lendable(services, latest, account):
        used = _used(latest, now, pull).model_copy(update={"expires_at": expires_at})
        told = used == latest.model_copy(update={"last_used_at": used.last_used_at})
        return latest if told else services.credentials.save(latest, used)
    return services.credentials.create(
        Credential(
            key=base.model_copy(update={"generation": generation}),
            registry=pull.registry,
            username_hint=masked(pull.username),
            lent_to=account,
            keyed_by=key_print(services.fingerprint_key),
            sources=(pull.source,),
            clusters=_clusters(pull),
            created_at=now,
            last_used_at=now,
            expires_at=expires_at,
        )
    )


def _touch_once(services: Services, key: CredentialKey, object_id: str, account: str) -> tuple[Credential, Credential]:
    """Touch the row and note the object's id and account; returns the row as read and as written."""
    row = _standing(services, key, account)
    seen = {"provider_id": object_id, "lent_to": account}
    return row, services.credentials.save(row, _used(row, services.clock.now()).model_copy(update=seen))


def _standing(services: Services, key: CredentialKey, account: str) -> Credential:
    """The row while it may be used; a row past its expiry is told like one that is being retired."""
    try:
        row = services.credentials.get(key)
    except UnreadableCredentialError as error:
        raise CredentialMovedError(f"credential {key.object_name} cannot be read any more") from error
    expired = row is not None and row.expires_at is not None and row.expires_at <= services.clock.now()
    if row is None or expired or not lendable(services, row, account):
        raise CredentialMovedError(f"credential {key.object_name} may not be used any more")
    return row


def _used(row: Credential, now: datetime, pull: PullCredential | None = None) -> Credential:
    """The row after a use: Active whatever it was, touched, with the source that yielded it."""
    sources, clusters = row.sources, row.clusters
    if pull is not None and pull.source not in sources:
        sources = (*sources, pull.source)[-MAX_SOURCES:]
    if pull is not None:
        clusters = {**clusters, **_clusters(pull)}
    return row.model_copy(
        update={
            "state": CredentialState.ACTIVE,
            "last_used_at": max(now, row.last_used_at),
            "superseded_at": None,
            "revocation_announced_at": None,
            "revocation_acknowledged_at": None,
            "sources": sources,
            "clusters": clusters,
            "note": "",
        }
    )


def _clusters(pull: PullCredential) -> dict[str, str]:
    return {pull.source.partition("/")[0]: pull.cluster_uid} if pull.cluster_uid else {}


def _persist(write: Callable[[], WrittenT]) -> WrittenT:
    """Repeat a read and conditional write while others win; the last conflict is raised."""
    for _ in range(MAX_TRIES - 1):
        try:
            return write()
        except CredentialConflictError:
            continue
    return write()


def _registries(provider: Provider) -> RegistryCredentials:
    if not isinstance(provider, RegistryCredentials):
        raise RequestRefusedError(f"{provider.name} keeps no registry credentials: the image cannot be pulled there")
    return provider
