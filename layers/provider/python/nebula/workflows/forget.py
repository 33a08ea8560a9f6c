"""When the ledger may forget a password that is over: every row of it retired, and nothing asked of anybody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from nebula.domain.credential import Credential, CredentialState
from nebula.domain.unreadable import UnreadableCredential
from nebula.stores.credentials import CredentialConflictError
from nebula.workflows.revoke import awaits_revocation, newest
from nebula.workflows.services import Services

#: How long a password that is over stays in the ledger; as long as ended claims do.
KEEP_RETIRED = timedelta(days=400)


def let_forget(
    services: Services, rows: Sequence[Credential], unreadable: Sequence[UnreadableCredential] = ()
) -> tuple[Credential, ...]:
    """Note on rows of passwords that are over for ``KEEP_RETIRED`` that they may go; returns all, as written.

    All generations of a password go together: what only the newest one tells, that it was revoked, must not be
    forgotten before an older one that a reminder could come from. A row in any other state than ``Retired``, or a
    revocation that nobody has acknowledged, keeps them all; and so does a row that cannot be read.
    """
    lines: dict[str, list[Credential]] = defaultdict(list)
    for row in rows:
        lines[row.key.line].append(row)
    now = services.clock.now()
    over = {name for name, line in lines.items() if _over(line, now)} - {row.line for row in unreadable}
    return tuple(_noted(services, row, now) if row.key.line in over else row for row in rows)


def _over(line: Sequence[Credential], now: datetime) -> bool:
    """Whether all rows of one password may go: nothing has happened with any of them for long enough."""
    retired = all(row.state is CredentialState.RETIRED for row in line)
    if not retired or any(map(awaits_revocation, newest(line))):
        return False
    last = [at for row in line for at in (row.retired_at or now, row.revocation_acknowledged_at) if at is not None]
    return now >= max(last) + KEEP_RETIRED


def _noted(services: Services, row: Credential, now: datetime) -> Credential:
    if row.forget_at is not None:
        return row
    try:
        return services.credentials.save(row, row.model_copy(update={"forget_at": now}))
    except CredentialConflictError:
        services.telemetry.info("credential moved meanwhile", credential_key=str(row.key))
        return row
