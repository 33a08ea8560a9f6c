"""Work on one claim among many: whatever goes wrong with it, the others have their turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from nebula.domain.claim import Claim
from nebula.events.batch import where
from nebula.kubernetes.api import KubernetesError
from nebula.providers.errors import ProviderError
from nebula.stores.claims import ConflictError, LedgerBusyError
from nebula.workflows.services import Services


@contextmanager
def one_claim(services: Services, claim: Claim, undone: str) -> Iterator[None]:
    """Swallow what the work on one claim raises, and say what was not done in the words of ``undone``.

    A claim that moved meanwhile was somebody else's turn; a cluster, a provider or a ledger in trouble is a warning;
    anything else is a defect of ours, counted, and told without its text.
    """
    try:
        yield
    except ConflictError:
        services.telemetry.info("claim moved meanwhile", claim_id=claim.claim_id)
    except (KubernetesError, ProviderError) as error:
        services.telemetry.warning(undone, claim_id=claim.claim_id, error=str(error))
    except (LedgerBusyError, ClientError, BotoCoreError) as error:
        services.telemetry.warning(undone, claim_id=claim.claim_id, error=where(error))
    except Exception as error:  # noqa: BLE001 - one claim that cannot be worked on must not cost the others theirs
        services.telemetry.error("claim failed", claim_id=claim.claim_id, error=where(error))
        services.telemetry.count("Defects")
