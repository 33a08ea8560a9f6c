"""The order in which provisioning lends a credential, without the rest of provisioning."""

from __future__ import annotations

from nebula.domain.claim import Claim
from nebula.providers.errors import ProviderError
from nebula.workflows.lend import CredentialMovedError, ensure_credential, forget_credential, record_credential

from tests.support.claims import attempt, placed
from tests.support.lending import Lending
from tests.support.simulated import request_for


def start_as_provisioning_does(world: Lending, name: str, secret: str) -> None:
    """Row, claim, provider object, machine; a lost race against retirement goes round again."""
    services, provider = world.services(), world.provider
    pull = world.pull(secret)
    claim: Claim | None = None
    for _ in range(3):
        key = record_credential(services, provider, pull)
        if claim is None:
            claim = world.claims.create(placed(name, credential_key=str(key), attempts=(attempt(),)))
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
