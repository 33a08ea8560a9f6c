"""NodePool specs that must be accepted, and ones that must not; one list for the model and for the CRD."""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]
ONE: list[Spec] = [{"name": "runpod"}]

#: Valid under the Nebula operator's own CRD (its samples' fields and its limits), so valid here unchanged.
OPERATOR: dict[str, Spec] = {
    "least": {"providers": ONE},
    "all fields": {
        "providers": [
            {"name": "runpod", "weight": 3, "regions": ["us", "US-KS-2"]},
            {"name": "modal", "regions": []},
            {"name": "kubernetes"},
        ],
        "capacityTypes": ["Spot", "OnDemand"],
        "strategy": "Ordered",
        "failover": {"blocklistTTL": "1h30m0s"},
        "egress": {"mode": "Allowlist", "targets": ["10.0.0.0/8", "*.huggingface.co"]},
    },
    "eight providers": {"providers": [{"name": f"p{n}"} for n in range(8)]},
    "a provider twice": {"providers": [{"name": "runpod", "regions": ["us"]}, {"name": "runpod", "regions": ["eu"]}]},
    "a tier twice": {"providers": ONE, "capacityTypes": ["Spot", "Spot"]},
    "empty failover": {"providers": ONE, "failover": {}},
    "no time to live": {"providers": ONE, "failover": {"blocklistTTL": "0s"}},
    "open egress": {"providers": ONE, "egress": {"mode": "Open"}},
    "blocked egress": {"providers": ONE, "egress": {"mode": "Blocked"}},
    "long region": {"providers": [{"name": "aws", "regions": ["r" * 32]}]},
    "many targets": {"providers": ONE, "egress": {"mode": "Allowlist", "targets": ["t" * 253] * 64}},
}

#: Valid with our additions.
ADDITIONS: dict[str, Spec] = {
    "lowest price": {"providers": ONE, "strategy": "LowestPrice", "maxPricePerHour": "2.50", "budgetPerHour": "100"},
    "whole money": {"providers": ONE, "maxPricePerHour": 3, "budgetPerHour": 40},
    "weighted": {"providers": [{"name": "a", "weight": 1}, {"name": "b", "weight": 9}], "strategy": "Weighted"},
    "flags": {"providers": ONE, "allowLargerShapes": True, "allowUnknownExit": True},
    "deadlines": {
        "providers": ONE,
        "failover": {"reserveDeadline": "90s", "releaseDeadline": "2m", "startDeadline": "1h"},
    },
    "first port": {"providers": ONE, "ingress": {"mode": "FirstPort"}},
    "ports": {
        "providers": ONE,
        "ingress": {
            "mode": "Ports",
            "ports": [{"port": 8080}, {"port": 22, "protocol": "TCP"}],
            "authentication": "Application",
        },
    },
    "closed ingress": {"providers": ONE, "ingress": {}},
    "parameters": {"providers": [{"name": "runpod", "parameters": {"cloud": "COMMUNITY"}}]},
    "somebody else's cloud": {"providers": [{"name": "other", "parameters": {"cloud": "any"}}]},
}

#: Refused at admission and by the model: what it is, the spec, and the field that the model names.
REFUSED: dict[str, tuple[Spec, str]] = {
    "no providers": ({}, "spec.providers"),
    "empty providers": ({"providers": []}, "spec.providers"),
    "nine providers": ({"providers": [{"name": f"p{n}"} for n in range(9)]}, "spec.providers"),
    "nameless provider": ({"providers": [{"weight": 1}]}, "spec.providers[0].name"),
    "no weight": ({"providers": [{"name": "a", "weight": 0}]}, "spec.providers[0].weight"),
    "long region": ({"providers": [{"name": "a", "regions": ["r" * 33]}]}, "spec.providers[0].regions[0]"),
    "wrong cloud": (
        {"providers": [{"name": "runpod", "parameters": {"cloud": "ALL"}}]},
        "spec.providers[0].parameters.cloud",
    ),
    "no tiers": ({"providers": ONE, "capacityTypes": []}, "spec.capacityTypes"),
    "unknown tier": ({"providers": ONE, "capacityTypes": ["Reserved"]}, "spec.capacityTypes[0]"),
    "unknown strategy": ({"providers": ONE, "strategy": "Cheapest"}, "spec.strategy"),
    "weightless": (
        {"providers": [{"name": "a", "weight": 1}, {"name": "b"}], "strategy": "Weighted"},
        "spec.providers[1].weight",
    ),
    "free": ({"providers": ONE, "maxPricePerHour": "0"}, "spec.maxPricePerHour"),
    "negative": ({"providers": ONE, "budgetPerHour": -1}, "spec.budgetPerHour"),
    "not money": ({"providers": ONE, "budgetPerHour": "much"}, "spec.budgetPerHour"),
    "wordy time": ({"providers": ONE, "failover": {"blocklistTTL": "soon"}}, "spec.failover.blocklistTTL"),
    "no time to start": ({"providers": ONE, "failover": {"startDeadline": "0s"}}, "spec.failover.startDeadline"),
    "egress without mode": ({"providers": ONE, "egress": {"targets": ["a"]}}, "spec.egress.mode"),
    "targets while open": ({"providers": ONE, "egress": {"mode": "Open", "targets": ["a"]}}, "spec.egress.targets"),
    "empty allowlist": ({"providers": ONE, "egress": {"mode": "Allowlist"}}, "spec.egress.targets"),
    "two in one target": (
        {"providers": ONE, "egress": {"mode": "Allowlist", "targets": ["a,b"]}},
        "spec.egress.targets[0]",
    ),
    "65 targets": ({"providers": ONE, "egress": {"mode": "Allowlist", "targets": ["a"] * 65}}, "spec.egress.targets"),
    "ports without mode": ({"providers": ONE, "ingress": {"ports": [{"port": 80}]}}, "spec.ingress.ports"),
    "mode without ports": ({"providers": ONE, "ingress": {"mode": "Ports"}}, "spec.ingress.ports"),
    "port twice": (
        {"providers": ONE, "ingress": {"mode": "Ports", "ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}},
        "spec.ingress.ports[1].port",
    ),
    "no port": (
        {"providers": ONE, "ingress": {"mode": "Ports", "ports": [{"port": 70000}]}},
        "spec.ingress.ports[0].port",
    ),
    "unknown authentication": (
        {"providers": ONE, "ingress": {"authentication": "Nobody"}},
        "spec.ingress.authentication",
    ),
}
