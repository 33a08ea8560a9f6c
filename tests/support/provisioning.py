"""The order in which provisioning lends a credential, without the rest of provisioning."""

from __future__ import annotations

from nebula.domain.claim import Claim
from nebula.providers.errors import ProviderError
from nebula.workflows.lend import CredentialMovedError, ensure_credential, forget_credential, record_credential

from tests.support.claims import attempt, placed
from tests.support.lending import Lending
from tests.support.simulated import request_for


def start_as_provisioning_does(world: Lending, name: str, secret: str, live: list[Claim]) -> None:
    """Row, claim, provider object, machine; a lost race against retirement goes round again.

    The claim is in ``live`` from before its write on: whoever crashes here looks up what was stored.
    """
    services, provider = world.services(), world.provider
    pull = world.pull(secret)
    claim: Claim | None = None
    for _ in range(3):
        key = record_credential(services, provider, pull)
        if claim is None:
            live.append(placed(name, credential_key=str(key), attempts=(attempt(),)))
            claim = world.claims.create(live[-1])
        else:
            claim = world.claims.save(claim, claim.model_copy(update={"credential_key": str(key)}))
        try:
            used = ensure_credential(services, provider, key, pull)
        except CredentialMovedError:
            continue
        break
    else:
        raise AssertionError("a credential moved three times under one Pod")
    try:
        provider.provision(request_for(claim=claim.claim_id, registry_credential_id=used))
    except ProviderError:
        forget_credential(services, provider, key)
        raise
