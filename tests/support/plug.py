"""Pulling the plug: the local stack's worker killed at random moments while Pods come and go."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

from nebula.domain.claim import Claim, claim_id_for
from nebula.stores.dynamo_claims import DynamoClaimStore

from local.aws import client
from tests.support.local_stack import World

#: A worker is killed once it made some of its round's instances, and so many seconds later.
LIVES = (0.0, 1.5)
#: Seconds for which none runs afterwards, and the most that a round waits for its instances.
PAUSES = (0.0, 1.0)
ROUND_SECONDS = 15.0
#: Pods that exist at once.
AT_ONCE = 30


@dataclass
class Plug:
    """Makes ``pods`` Pods in all and kills the worker ``kills`` times meanwhile; choices come from ``seed``."""

    world: World
    seed: int
    pods: int
    kills: int
    uids: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.standing: list[str] = []

    def pull(self) -> None:
        """Live through it: after the last kill a worker runs, and the Pods that were left stand."""
        share = -(-self.pods // (self.kills + 1))
        for _ in range(self.kills):
            made = len(self.world.made()) + self.random.randint(0, share)
            self._round(share)
            until = time.monotonic() + ROUND_SECONDS
            while len(self.world.made()) < made and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(self.random.uniform(*LIVES))
            self.world.stack.kill_worker()
            time.sleep(self.random.uniform(*PAUSES))
            self.world.stack.start_worker()
        while len(self.uids) < self.pods:
            self._round(share)

    def _round(self, number: int) -> None:
        """Some Pods more; the oldest but a few, and some others at random, are deleted."""
        for _ in range(min(number, self.pods - len(self.uids))):
            name = f"life-{len(self.uids):03}"
            self.uids[name] = self.world.create_pod("indexer", name)
            self.standing.append(name)
        surplus = max(0, len(self.standing) - AT_ONCE)
        unlucky = self.standing[:surplus] + [n for n in self.standing[surplus:] if self.random.random() < 0.05]
        for name in unlucky:
            self.delete(name)

    def delete(self, name: str) -> None:
        """``kubectl delete pod``."""
        self.world.kubectl.delete("Pod", name)
        self.standing.remove(name)

    def claims(self) -> dict[str, Claim]:
        """What the ledger says, by Pod name; a Pod deleted before anybody saw it has no claim."""
        endpoints = self.world.endpoints
        table = self.world.stack.worker.deployment.outputs["ClaimsTableName"]
        store = DynamoClaimStore(client("dynamodb", endpoints), table)
        found = {name: store.get(claim_id_for(endpoints.cluster, uid)) for name, uid in self.uids.items()}
        return {name: claim for name, claim in found.items() if claim is not None}

    def dead_letters(self) -> list[dict[str, Any]]:
        """The events in every queue of dead letters."""
        sqs = client("sqs", self.world.endpoints)
        letters = []
        for url in sqs.list_queues().get("QueueUrls", []):
            if "dead" not in url.lower() and "dlq" not in url.lower():
                continue
            while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
                letters += [json.loads(message["Body"]) for message in messages]
                for message in messages:
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return letters
