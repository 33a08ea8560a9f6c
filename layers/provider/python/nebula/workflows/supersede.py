"""Noticing that a Secret no longer yields a lent password, with GETs alone (docs/credentials.md).

Nothing in a cluster may list or watch Secrets, so each source that a row remembers is read by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nebula.credentials.fingerprint import key_print
from nebula.credentials.sources import Yield, reconcile
from nebula.domain.credential import Credential, CredentialState
from nebula.domain.unreadable import UnreadableCredential
from nebula.events.details import DetailType
from nebula.kubernetes.api import ClusterUnavailableError, ForbiddenError, KubernetesError
from nebula.kubernetes.pull_secrets import fingerprints_in
from nebula.stores.credentials import CredentialConflictError
from nebula.workflows.credential_audit import audit
from nebula.workflows.readable import tell_unreadable_credentials
from nebula.workflows.services import Services

_KEPT = (CredentialState.ACTIVE, CredentialState.SUPERSEDED)


@dataclass
class _Secrets:
    """Reads each Secret once per run; a cluster that does not answer is not asked again."""

    services: Services
    known: dict[str, frozenset[str] | None] = field(default_factory=dict)
    uids: dict[str, str] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)

    def answer(self, source: str, row: Credential) -> Yield:
        """Whether a source yields a row's password now.

        Unknown where another cluster answers under the name, or where the row was named under another fingerprint key.
        """
        if row.keyed_by not in ("", key_print(self.services.fingerprint_key)):
            return Yield.UNKNOWN
        if source not in self.known:
            self.known[source] = self._read(source)
        found = self.known[source]
        if found is None or not self._is_home_of(row, source.partition("/")[0]):
            return Yield.UNKNOWN
        return Yield.YES if row.key.fingerprint in found else Yield.NO

    def _is_home_of(self, row: Credential, cluster: str) -> bool:
        wanted = row.clusters.get(cluster, "")
        if not wanted or cluster in self.silent:
            return not wanted
        if cluster not in self.uids:
            self.uids[cluster] = self._uid(cluster)
        return self.uids[cluster] in ("", wanted)

    def _uid(self, cluster: str) -> str:
        """A cluster's identity; empty where our role may not read it and nothing can be compared."""
        try:
            return self.services.clusters.get(cluster).cluster_uid()
        except ForbiddenError:
            return ""
        except KubernetesError as error:
            self.services.telemetry.warning("cluster unknown", cluster=cluster, error=type(error).__name__)
            self.silent.add(cluster)
            return "unknown"

    def _read(self, source: str) -> frozenset[str] | None:
        """The fingerprints in a Secret, none when it is gone, None when nobody can tell."""
        cluster, namespace, name = source.split("/", 2)
        if cluster in self.silent:
            return None
        try:
            secret = self.services.clusters.get(cluster).get_secret(namespace, name)
        except (KubernetesError, KeyError) as error:
            if not isinstance(error, KubernetesError) or isinstance(error, ClusterUnavailableError):
                self.silent.add(cluster)
            self.services.telemetry.warning("pull secret unknown", source=source, error=type(error).__name__)
            return None
        return frozenset() if secret is None else fingerprints_in(secret, self.services.fingerprint_key)


def refresh_sources(services: Services, rows: Sequence[Credential], *, limit: int = 500) -> tuple[Credential, ...]:
    """Recompute ``Active`` or ``Superseded`` of every row from the Secrets that can be read.

    Returns all rows, those that moved as written. At most ``limit`` Secrets are read per call (or all of one row);
    where there are more, each hour's call takes the next rows. A row that somebody used meanwhile stays as
    it was given: the next run looks again.
    """
    if not services.fingerprint_key.get_secret_value():
        services.telemetry.error("sources not read: the installation has no fingerprint key")
        return tuple(rows)
    wanted = _window(services, rows, limit)
    secrets = _Secrets(services)
    return tuple(_refreshed(services, row, secrets, wanted) for row in rows)


def secret_changed(services: Services, cluster: str, namespace: str, name: str) -> int:
    """A Secret changed or was deleted: recompute the rows that it once yielded; returns how many moved."""
    source = f"{cluster}/{namespace}/{name}"
    unreadable: list[UnreadableCredential] = []
    rows = [row for row in services.credentials.all(unreadable=unreadable) if source in row.sources]
    tell_unreadable_credentials(services, unreadable)
    refreshed = refresh_sources(services, rows)
    return sum(after is not before for before, after in zip(rows, refreshed, strict=True))


def _window(services: Services, rows: Sequence[Credential], limit: int) -> frozenset[str]:
    """The sources whose turn it is: those of whole rows, since only all sources of a row together supersede it."""
    kept = sorted({row.sources for row in rows if row.state in _KEPT and row.sources})
    turns: list[set[str]] = [set()]
    for sources in kept:
        if turns[-1] and len(turns[-1].union(sources)) > limit:
            turns.append(set())
        turns[-1].update(sources)
    hour = int(services.clock.now().timestamp()) // 3600
    return frozenset(turns[hour % len(turns)])


def _refreshed(services: Services, row: Credential, secrets: _Secrets, wanted: frozenset[str]) -> Credential:
    if row.state not in _KEPT:
        return row
    answers = {source: secrets.answer(source, row) for source in row.sources if source in wanted}
    after = reconcile(row, answers, services.clock.now())
    if after is row:
        return row
    try:
        written = services.credentials.save(row, after)
    except CredentialConflictError:
        services.telemetry.info("credential moved while its sources were read", credential_key=str(row.key))
        return row
    if row.superseded_at is None and written.superseded_at is not None:
        audit(services, DetailType.CREDENTIAL_SUPERSEDED, written, "no Secret yields it any more")
    elif row.state is not written.state:
        services.telemetry.info("credential active again", credential_key=str(row.key), sources=written.sources)
    return written
