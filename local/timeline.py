"""What happens to Pods, one readable line each, as it happens: on stderr."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nebula.domain.candidate import Candidate
from nebula.domain.claim import Attempt, AttemptOutcome, Claim, Phase
from nebula.kubernetes import names

_NAME_WIDTH = 12
_WORD_WIDTH = 10
_RANKED = re.compile(r": rank \d+( \[|$)")
_COLORS = {"good": "32", "bad": "33", "plain": "0", "quiet": "2"}


@dataclass(frozen=True)
class View:
    """One Pod as it is now: the object (None: gone), its claim, and the ids that the provider still has."""

    pod: dict[str, Any] | None
    claim: Claim | None
    instances: frozenset[str]


@dataclass
class Timeline:
    """Compares each view of a Pod with what was said of it, and says the rest."""

    write: Callable[[str], object] = lambda text: print(text, end="", file=sys.stderr, flush=True)
    color: bool = False
    started: float = field(default_factory=time.monotonic)
    _said: set[tuple[str, str]] = field(default_factory=set)

    def say(self, name: str, word: str, text: str, tone: str = "plain") -> None:
        """One line, now."""
        line = f"{self.elapsed():6.1f}s  {name:<{_NAME_WIDTH}} {word:<{_WORD_WIDTH}} {text}"
        self.write(f"\x1b[{_COLORS[tone]}m{line}\x1b[0m\n" if self.color else f"{line}\n")

    def elapsed(self) -> float:
        """Seconds since the first line could have been written."""
        return time.monotonic() - self.started

    def note(self, name: str, view: View) -> None:
        """Say what is new about a Pod."""
        if view.claim is not None:
            self._claim(name, view.claim, view.instances)
        if view.pod is not None:
            self._pod(name, view.pod)
        elif view.claim is not None:
            self._once(name, "gone", "gone", "the Pod is deleted", "good")

    def _once(self, name: str, key: str, word: str, text: str, tone: str = "plain") -> None:
        if (name, key) not in self._said:
            self._said.add((name, key))
            self.say(name, word, text, tone)

    def _claim(self, name: str, claim: Claim, instances: frozenset[str]) -> None:
        tried: list[str] = []
        for attempt in claim.attempts:
            self._placed(name, attempt.candidate, tried)
            self._attempt(name, attempt, instances)
            tried.append(attempt.candidate.key)
        if claim.candidate is not None:
            self._placed(name, claim.candidate, tried)
            for line in claim.decision:
                self._once(name, f"{claim.candidate.key} {line}", "", _not_taken(line), "quiet")
        if claim.phase is Phase.PENDING:
            self._once(name, f"deferred {claim.message}", "waits", claim.message, "bad")
        elif claim.phase is Phase.TERMINATING:
            why = str(claim.termination_reason)
            self._once(name, "terminating", "reclaiming", f"{why}: the instance is given back")
        elif claim.phase is Phase.TERMINATED:
            self._once(name, "terminated", "closed", "every attempt is confirmed gone; the claim holds nothing", "good")

    def _placed(self, name: str, candidate: Candidate, tried: Sequence[str]) -> None:
        """A choice, also one that a look came too late to see standing: the attempts remember it."""
        where = _where(candidate)
        if any(key != candidate.key for key in tried):
            self._once(name, f"failover {candidate.key}", "failover", f"behind the gate, to {where}", "bad")
        kinds = f", {candidate.instance_types[0]}" if candidate.instance_types else ""
        price = f"${candidate.price.total:.4f}/h ({candidate.price.source})"
        self._once(name, f"placed {candidate.key}", "placed", f"{where}{kinds}, {price}")

    def _attempt(self, name: str, attempt: Attempt, instances: frozenset[str]) -> None:
        where = _where(attempt.candidate)
        self._once(
            name, f"try {attempt.number}", "creating", f"attempt {attempt.number} on {where}, written down first"
        )
        if attempt.outcome is AttemptOutcome.REFUSED:
            self._once(name, f"refused {attempt.number}", "refused", f"{where}: {attempt.detail}", "bad")
        if attempt.instance_id is not None:
            made = f"instance {attempt.instance_id} exists"
            self._once(name, f"made {attempt.number}", "created", made)
            if attempt.instance_id not in instances and attempt.outcome is AttemptOutcome.GONE:
                self._once(name, f"gone {attempt.number}", "gone", f"{attempt.instance_id} at {where}", "good")

    def _pod(self, name: str, pod: dict[str, Any]) -> None:
        metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
        gates = [gate["name"] for gate in spec.get("schedulingGates") or []]
        if names.GATE in gates:
            self._once(name, "gated", "gated", f"waits behind {names.GATE}")
        annotations = metadata.get("annotations") or {}
        if names.GATE not in gates and names.ANNOTATION_INSTANCE_ID in annotations:
            price = annotations.get(names.ANNOTATION_PRICE_PER_HOUR, "?")
            self._once(name, "released", "released", f"as {annotations[names.ANNOTATION_INSTANCE_ID]} at ${price}/h")
        if endpoint := annotations.get(names.ANNOTATION_ENDPOINT):
            self._once(name, f"endpoint {endpoint}", "endpoint", endpoint)
        if spec.get("nodeName"):
            self._once(name, "bound", "bound", f"to {spec['nodeName']}")
        if status.get("phase") not in (None, "Pending"):
            self._once(name, f"phase {status['phase']}", str(status["phase"]), _shown(status), "good")
        if metadata.get("deletionTimestamp"):
            self._once(name, "deleting", "deleting", "deletion asked for")


def _not_taken(line: str) -> str:
    """A line of a claim's decision: ranked candidates are the next to be tried, the others were ruled out."""
    return f"next {line}" if _RANKED.search(line) else f"not {line}"


def _where(candidate: Candidate) -> str:
    return f"{candidate.provider} {candidate.region} {candidate.capacity_type}"


def _shown(status: dict[str, Any]) -> str:
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or [])
    return "ready" if ready else str(status.get("reason") or "")
