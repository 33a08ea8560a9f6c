"""What AWS charges, as of ``AS_OF``, in us-east-1 and in US dollars. Free quantities are those that never end."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

AS_OF = "2026-11"
HOURS_PER_MONTH = 730
"""AWS's own month."""


@dataclass(frozen=True)
class Price:
    """USD per unit, the free units of a month, and the page that says so."""

    usd: Decimal
    unit: str
    free: Decimal
    source: str


LAMBDA_GB_SECONDS = Price(
    Decimal("0.0000133334"), "GB-s (arm64)", Decimal(400_000), "https://aws.amazon.com/lambda/pricing/"
)
LAMBDA_REQUESTS = Price(Decimal("0.0000002"), "requests", Decimal(1_000_000), "https://aws.amazon.com/lambda/pricing/")
SCHEDULER = Price(
    Decimal("0.000001"), "invocations", Decimal(14_000_000), "https://aws.amazon.com/eventbridge/pricing/"
)
SQS_REQUESTS = Price(Decimal("0.0000004"), "requests", Decimal(1_000_000), "https://aws.amazon.com/sqs/pricing/")
# The free capacity of DynamoDB is of provisioned tables; on demand nothing but storage is free.
DYNAMODB_READS = Price(
    Decimal("0.000000125"), "read units", Decimal(0), "https://aws.amazon.com/dynamodb/pricing/on-demand/"
)
DYNAMODB_WRITES = Price(
    Decimal("0.000000625"), "write units", Decimal(0), "https://aws.amazon.com/dynamodb/pricing/on-demand/"
)
LOG_BYTES = Price(
    Decimal("0.50") / 10**9, "bytes of logs", Decimal(5 * 10**9), "https://aws.amazon.com/cloudwatch/pricing/"
)
ALARM_METRICS = Price(Decimal("0.10"), "alarm metrics", Decimal(10), "https://aws.amazon.com/cloudwatch/pricing/")
CUSTOM_METRICS = Price(Decimal("0.30"), "custom metrics", Decimal(10), "https://aws.amazon.com/cloudwatch/pricing/")
KMS_REQUESTS = Price(Decimal("0.000003"), "KMS requests", Decimal(20_000), "https://aws.amazon.com/kms/pricing/")


def cost(price: Price, quantity: Decimal, *, free: bool) -> Decimal:
    """USD for a month's quantity, within the free quantity or without any."""
    return max(Decimal(0), quantity - (price.free if free else 0)) * price.usd
