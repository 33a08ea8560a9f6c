"""The only place that picks implementations: settings in, ``Services`` out.

Built on a function's first event and kept while its process is warm. Nothing is called over the network
here but Parameter Store, once, for the fingerprint key of the two functions that lend or retire credentials.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta

from pydantic import SecretStr

from nebula import cold_start
from nebula.aws import LONGEST_CALL_SECONDS, AwsClients
from nebula.clock import SystemClock
from nebula.events.eventbridge import EventBridgePublisher
from nebula.events.memory import MemoryTickQueue
from nebula.events.publisher import TickQueue
from nebula.events.sqs_ticks import SqsTickQueue
from nebula.http import Limits
from nebula.kubernetes import transport
from nebula.kubernetes.clusters import ParameterClusters
from nebula.observability import PowertoolsTelemetry
from nebula.parameters import Parameters, SsmParameters
from nebula.providers.factory import ProviderFactory, Surroundings
from nebula.secret_references import SecretReferences
from nebula.settings import Settings
from nebula.stores.dynamo_blocks import DynamoBlockStore
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.dynamo_credentials import DynamoCredentialStore
from nebula.stores.dynamo_sightings import DynamoSightingStore
from nebula.workflows.services import Services

#: Functions whose role may read the fingerprint key.
FINGERPRINTING = frozenset({"provisioning", "credential_retirement"})
#: In the status loop one provider or cluster that hangs must leave time for the others: it is asked again in seconds.
POLLING_PROVIDER_LIMITS = Limits(connect=3.0, read=10.0, total=15.0)
#: Placement has 30 s for ten Pods: three catalog reads that hang must leave time to place from the shipped catalog.
PLACEMENT_PROVIDER_LIMITS = Limits(connect=3.0, read=5.0, total=6.0, tries=2)
POLLING_CLUSTER_LIMITS = replace(transport.LIMITS, connect=2.0, read=6.0, total=8.0, tries=2)


def build(function: str, settings: Settings) -> Services:
    """Everything one function works with, over AWS.

    Endpoints come from ``AWS_ENDPOINT_URL`` and ``RUNPOD_API_BASE_URL`` only. Raises
    ``ParameterUnavailableError`` when the fingerprint key cannot be read.
    """
    clock = SystemClock()
    telemetry = PowertoolsTelemetry(function, settings.metrics_namespace)
    aws = AwsClients()
    parameters = SsmParameters(aws.ssm, clock)
    cluster_access = SecretReferences(parameters, lambda: aws.secretsmanager, clock)
    provider_limits, cluster_limits = limits_of(function)
    surroundings = Surroundings(clock=clock, telemetry=telemetry, environment=dict(os.environ), limits=provider_limits)
    services = Services(
        function=function,
        installation=settings.installation_id,
        clock=clock,
        claims=DynamoClaimStore(aws.dynamodb, settings.claims_table),
        blocks=DynamoBlockStore(aws.dynamodb, settings.blocks_table),
        credentials=DynamoCredentialStore(aws.dynamodb, settings.credentials_table),
        sightings=DynamoSightingStore(aws.dynamodb, settings.blocks_table),
        publisher=EventBridgePublisher(aws.events, settings.event_bus),
        ticks=_ticks(aws, settings, clock),
        clusters=ParameterClusters(cluster_access, settings.clusters_path, clock, limits=cluster_limits),
        providers=ProviderFactory(parameters, settings.providers_path, surroundings),
        telemetry=telemetry,
        fingerprint_key=_fingerprint_key(function, parameters, settings, telemetry),
        lease=settings.lease,
        tick_interval=settings.tick_interval,
        longest_call=longest_call_of(function),
    )
    cold_start.over()
    return services


def limits_of(function: str) -> tuple[Limits, Limits]:
    """Bounds of one call to a provider, and to a cluster."""
    if function == "status_polling":
        return POLLING_PROVIDER_LIMITS, POLLING_CLUSTER_LIMITS
    if function == "placement":
        return PLACEMENT_PROVIDER_LIMITS, transport.LIMITS
    return Limits(), transport.LIMITS


def longest_call_of(function: str) -> timedelta:
    """The longest that one outside call of a function can take, creates aside."""
    seconds = max(LONGEST_CALL_SECONDS, *(limits.total for limits in limits_of(function)))
    return timedelta(seconds=seconds)


def _ticks(aws: AwsClients, settings: Settings, clock: SystemClock) -> TickQueue:
    """Only functions that may enqueue ticks are given the queue; the others have nowhere to put one."""
    if settings.tick_queue_url:
        return SqsTickQueue(aws.sqs, settings.tick_queue_url, clock)
    return MemoryTickQueue(clock)


def _fingerprint_key(
    function: str, parameters: Parameters, settings: Settings, telemetry: PowertoolsTelemetry
) -> SecretStr:
    """The key, or an empty one: then images that need a credential wait, and say what is missing."""
    if function not in FINGERPRINTING:
        return SecretStr("")
    key = parameters.get(settings.fingerprint_key_parameter)
    if key is None:
        telemetry.error("no fingerprint key", parameter=settings.fingerprint_key_parameter)
    return key or SecretStr("")
