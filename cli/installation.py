"""Which installation a command speaks to: its settings, from the environment, a file, or a deployed stack."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Whose settings an operator's command on credentials takes: it has the retirement policy.
FUNCTION = "CredentialRetirementFunction"
MAX_FILE_BYTES = 1_000_000
#: What to say to somebody who named no installation.
HOW = (
    "name the installation: --stack nebula for a deployed one (make: STACK=nebula; AWS_PROFILE and AWS_REGION as for"
    ' the AWS CLI), --env-file local/sam-env.json for a running make stack (make: ARGS="--env-file local/sam-env.json")'
)


class InstallationError(Exception):
    """The installation cannot be told; the message says what is missing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how an installation is named."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--stack", help="a deployed stack: settings are read from its functions")
    where.add_argument("--env-file", type=Path, help="settings by function, as `make stack` writes local/sam-env.json")


def load(arguments: argparse.Namespace) -> None:
    """Put the installation's settings into this process's environment.

    Without an option the environment is taken as it is. Raises InstallationError.
    """
    if region := os.environ.get("AWS_REGION"):
        # boto3 does not know this name, which the AWS CLI prefers.
        os.environ["AWS_DEFAULT_REGION"] = region
    if arguments.env_file is not None:
        os.environ.update(_from_file(arguments.env_file))
    elif arguments.stack is not None:
        os.environ.update(_from_stack(arguments.stack))


@contextlib.contextmanager
def asked(arguments: argparse.Namespace) -> Iterator[None]:
    """Run what asks the installation: what it lacks, or does not answer, becomes an InstallationError."""
    from botocore.exceptions import BotoCoreError, ClientError
    from nebula.events.publisher import PublishError
    from nebula.parameters import ParameterUnavailableError
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        fields = [entry["loc"] for entry in error.errors(include_input=False)]
        missing = ", ".join(f"NEBULA_{'_'.join(map(str, field)).upper()}" for field in fields)
        named = arguments.stack or arguments.env_file
        raise InstallationError(f"{'' if named else f'{HOW}; '}settings missing or wrong: {missing}") from None
    except (BotoCoreError, ClientError, ParameterUnavailableError, PublishError) as error:
        told = "; does make stack still run?" if arguments.env_file is not None else ""
        raise InstallationError(f"AWS did not answer: {error}{told}") from None


def _from_file(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InstallationError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else f"not JSON: {error}"
        raise InstallationError(f"{path}: {why} (make stack writes local/sam-env.json)") from None
    variables = document.get(FUNCTION) if isinstance(document, dict) else None
    if not isinstance(variables, dict):
        raise InstallationError(f"{path}: holds no settings of {FUNCTION}")
    return {str(name): str(value) for name, value in variables.items()}


def _from_stack(stack: str) -> dict[str, str]:
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError
    from nebula.aws import client_config

    config = client_config()
    try:
        resource = boto3.client("cloudformation", config=config).describe_stack_resource(
            StackName=stack, LogicalResourceId=FUNCTION
        )
        name = resource["StackResourceDetail"]["PhysicalResourceId"]
        found = boto3.client("lambda", config=config).get_function_configuration(FunctionName=name)
    except (BotoCoreError, ClientError) as error:
        where = "AWS_PROFILE and AWS_REGION choose account and region"
        raise InstallationError(f"stack {stack}: {error} ({where})") from None
    variables = found.get("Environment", {}).get("Variables", {})
    return {name: value for name, value in variables.items() if name.startswith("NEBULA_")}
