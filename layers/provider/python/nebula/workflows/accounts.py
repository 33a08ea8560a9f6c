"""Whose account a provider's answers are about.

An attempt keeps the account that it was made in. Where the provider does not tell its account, a keyed
fingerprint of the key stands for it: another key may be of the same account, and shows that by listing
something of ours that the former key made. Until then what the new key does not show is *unknown*.
"""

from __future__ import annotations

from nebula.domain.claim import Attempt
from nebula.providers.base import Provider
from nebula.workflows.services import Services


def account_of(services: Services, provider: Provider) -> str:
    """The account behind a provider now. Raises ``ProviderError`` when it cannot be told."""
    account = provider.account()
    return f"account/{account}" if account is not None else f"key/{services.providers.fingerprint(provider.name)}"


def is_of(services: Services, attempt: Attempt, account: str) -> bool:
    """Whether what ``account`` does not show of an attempt is not there."""
    return same_account(services, attempt.candidate.provider, attempt.account, account)


def same_account(services: Services, provider: str, former: str, account: str) -> bool:
    """Whether what was made in ``former`` is to be found in ``account``: the same, or learnt to be."""
    if former in ("", account):
        return True
    return services.sightings.known(_same(provider, former, account), services.clock.now())


def learn(services: Services, attempt: Attempt, account: str) -> None:
    """``account`` showed an attempt: what was made under the attempt's account is to be found here too."""
    learn_account(services, attempt.candidate.provider, attempt.account, account)


def learn_account(services: Services, provider: str, former: str, account: str) -> None:
    """``account`` showed something that was made in ``former``."""
    if former not in ("", account):
        services.sightings.first_seen(_same(provider, former, account), services.clock.now())


def _same(provider: str, former: str, account: str) -> str:
    return f"same-account/{provider}/{former}/{account}"
