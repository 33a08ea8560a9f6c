"""The operator's view of lent credentials, and the word that acknowledges."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from nebula.credentials.policy import RetirementPolicies
from nebula.domain.credential import CredentialKey
from nebula.domain.unreadable import UnreadableCredential
from nebula.events.details import DetailType
from nebula.providers.errors import AuthenticationError
from nebula.providers.simulated import Call
from nebula.workflows.credential_report import CredentialReport, plan_retirement, report_credentials

from cli import installation
from cli.__main__ import main
from cli.credentials_table import age, render_report
from tests.support.lending import DAY, HOUR, PASSWORD, POLICY, START, USER, Lending

POLICIES = RetirementPolicies(default=POLICY)
ENVIRONMENT = {
    f"NEBULA_{name}": "x"
    for name in (
        "INSTALLATION_ID",
        "EVENT_BUS",
        "CLAIMS_TABLE",
        "BLOCKS_TABLE",
        "CREDENTIALS_TABLE",
        "PROVIDERS_PATH",
        "CLUSTERS_PATH",
        "FINGERPRINT_KEY_PARAMETER",
    )
}
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def world() -> Lending:
    """Two passwords: one superseded with a live workload, one current; and an object nobody knows."""
    made = Lending()
    made.put_secret()
    made.start("old")
    made.put_secret(f"{PASSWORD}-2")
    made.start("new")
    made.retire()
    made.provider.add("nebula-by-someone-else")
    made.clock.advance(2 * HOUR)
    return made


@pytest.fixture
def command(world: Lending, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("nebula.wiring.build", lambda function, settings: world.services(function=function))

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["credentials", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_table_tells_who_lent_what_until_when(command: Command, world: Lending) -> None:
    code, out, _ = command()
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["provider", "id", "registry", "user"]
    old = next(line for line in lines if "Superseded" in line)
    assert "registry.example.com" in old
    assert "prod/default/pull" in old
    assert "c***" in old
    assert "retire when unused" in old
    assert "1 live workload; superseded" in old
    new = next(line for line in lines if "Active" in line)
    assert "in 6d" in new
    assert any("Unrecorded" in line and "left alone" in line for line in lines)
    key = next(row.key for row in world.rows() if row.superseded_at)
    assert f'make credentials ARGS="acknowledge {key}"' in out
    assert "revoke the password of user c*** at registry.example.com" in out


def test_the_json_is_the_whole_report_and_alone_on_stdout(command: Command) -> None:
    code, out, _ = command("--output", "json")
    report = CredentialReport.model_validate(json.loads(out))
    assert code == 0
    assert [line.state for line in report.lines].count("Unrecorded") == 1
    superseded = next(line for line in report.lines if line.state == "Superseded")
    assert (superseded.live_workloads, superseded.acknowledge) == (1, True)


def test_no_user_and_no_password_shows(command: Command) -> None:
    shown = "".join(
        text for words in ((), ("--output", "json"), ("--plan",), ("--all",)) for text in command(*words)[1:]
    )
    assert PASSWORD not in shown
    assert USER not in shown


def test_the_plan_tells_what_the_next_run_does_and_why_not_more_and_changes_nothing(
    command: Command, world: Lending
) -> None:
    before, events = world.rows(), len(world.publisher.events)
    _, out, _ = command("--plan")
    lines = out.splitlines()
    assert any(line.startswith("Deferred: ") and line.endswith("live workloads use it") for line in lines)
    assert any(
        line.startswith("Waiting: ") and "retire when unused in 6d22h: 1 live workload" in line for line in lines
    )
    assert "Unrecorded: simulated/nebula-by-someone-else: left alone" in lines
    for claim in world.claims.all():
        world.end(claim)
    _, out, _ = command("--plan")
    assert any(line.startswith("Planned: ") and line.endswith(": superseded") for line in out.splitlines())
    assert (world.rows(), len(world.publisher.events)) == (before, events)
    assert world.provider.script.counts[Call.REGISTRY_DELETE] == 0
    assert [outcome.reason for outcome in world.retire().outcomes] == ["superseded"], "and so it does"


def test_the_plan_as_json_holds_all_that_its_text_does(command: Command, world: Lending) -> None:
    world.provider.script.fail(Call.REGISTRY_LIST, AuthenticationError("bad key"))
    answer = json.loads(command("--plan", "--output", "json")[1])
    assert answer["problems"] == ["simulated: Authentication: bad key"]
    keys = {row.key: row.superseded_at is not None for row in world.rows()}
    assert [(line["next_action"], keys[CredentialKey.parse(line["key"])]) for line in answer["waiting"]] == [
        ("retire when unused", False)
    ]
    assert [(line["kind"], keys[CredentialKey.parse(line["key"])]) for line in answer["outcomes"]] == [
        ("Deferred", True)
    ]


def test_the_plan_reads_sources_as_the_run_does(world: Lending) -> None:
    world.delete_secret()
    for claim in world.claims.all():
        world.end(claim)
    world.clock.advance(timedelta(minutes=10))
    at_once = RetirementPolicies(default=POLICY.model_copy(update={"superseded_after": timedelta(0)}))
    assert len(plan_retirement(world.services(), at_once).outcomes) == 2
    assert [row.superseded_at is None for row in world.rows()].count(True) == 1


def test_retired_ones_show_on_request_or_while_a_person_is_waited_for(command: Command, world: Lending) -> None:
    for claim in world.claims.all():
        world.end(claim)
    world.clock.advance(8 * DAY)
    world.retire()
    _, out, _ = command()
    assert out.count("Retired") == 1, "the superseded one, until it is acknowledged"
    _, out, _ = command("--all")
    assert out.count("Retired") == 2


def test_acknowledging_is_an_event(command: Command, world: Lending) -> None:
    key = str(next(row.key for row in world.rows() if row.superseded_at))
    code, out, _ = command("acknowledge", key)
    assert (code, out) == (
        0,
        f"acknowledged: {key} (the next table shows it; a reminder that was under way may still come)\n",
    )
    (event,) = world.publisher.of_type(DetailType.CREDENTIAL_REVOCATION_ACKNOWLEDGED)
    assert event.source == "nebula.operator"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("acknowledge",), 2, "needs a KEY"),
        (("list", "a/b/c/1"), 2, "nothing else takes one"),
        (("acknowledge", "nonsense"), 1, "not a key"),
        (("acknowledge", f"simulated/acct/{'0' * 32}/1"), 1, "nothing waits"),
    ],
)
def test_wrong_words_are_told(command: Command, words: tuple[str, ...], code: int, said: str) -> None:
    found, out, err = command(*words)
    assert (found, out) == (code, "")
    assert said in err


def test_a_current_credential_has_nothing_to_acknowledge(command: Command, world: Lending) -> None:
    key = str(next(row.key for row in world.rows() if not row.superseded_at))
    assert command("acknowledge", key)[0] == 1


def test_missing_settings_are_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEBULA_EVENT_BUS")
    code, out, err = command()
    assert (code, out) == (1, "")
    assert "NEBULA_EVENT_BUS" in err
    assert "--stack nebula" in err


def test_a_provider_that_does_not_answer_is_named_and_its_rows_still_show(world: Lending) -> None:
    world.provider.script.fail(Call.REGISTRY_LIST, AuthenticationError("bad key"))
    report = report_credentials(world.services(), POLICIES)
    assert report.problems == ("simulated: Authentication: bad key",)
    assert len(report.lines) == 2
    assert "problem: simulated" in render_report(report, world.clock.now())


def test_an_empty_ledger_says_so() -> None:
    world = Lending()
    world.providers.keys.clear()
    assert render_report(report_credentials(world.services(), POLICIES), START) == "no credential is lent"


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=5), "0m"),
        (5 * HOUR, "5h"),
        (3 * DAY, "3d"),
        (-2 * HOUR, "in 2h"),
        (-7 * DAY, "in 7d"),
        (HOUR - 7 * DAY, "in 6d23h"),
    ],
)
def test_ages(ago: timedelta, shown: str) -> None:
    assert age(START - ago, START) == shown


def _arguments(**given: Any) -> Any:
    return SimpleNamespace(**({"env_file": None, "stack": None} | given))


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "line 1"), ("[]", "no settings"), ('{"Other": {}}', "no settings"), (" " * 1_000_001, "larger than")],
)
def test_a_file_of_settings_that_cannot_be_used_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "env.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(installation.InstallationError, match=said):
        installation.load(_arguments(env_file=path))


def test_settings_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEBULA_EVENT_BUS", "other")
    path = tmp_path / "env.json"
    path.write_text(json.dumps({installation.FUNCTION: {"NEBULA_EVENT_BUS": "bus"}}), encoding="utf-8")
    installation.load(_arguments(env_file=path))
    assert os.environ["NEBULA_EVENT_BUS"] == "bus"


def test_settings_come_from_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEBULA_EVENT_BUS", "other")
    variables = {"NEBULA_EVENT_BUS": "bus", "RUNPOD_API_BASE_URL": "https://elsewhere.example"}
    clients = {
        "cloudformation": SimpleNamespace(
            describe_stack_resource=lambda **asked: {
                "StackResourceDetail": {"PhysicalResourceId": f"{asked['StackName']}-{asked['LogicalResourceId']}"}
            }
        ),
        "lambda": SimpleNamespace(
            get_function_configuration=lambda FunctionName: {
                "Environment": {"Variables": variables if FunctionName == "nebula-CredentialRetirementFunction" else {}}
            }
        ),
    }
    monkeypatch.setattr("boto3.client", lambda service, config: clients[service])
    installation.load(_arguments(stack="nebula"))
    assert os.environ["NEBULA_EVENT_BUS"] == "bus"
    assert "RUNPOD_API_BASE_URL" not in os.environ


def test_the_region_is_the_one_that_the_aws_cli_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 alone takes the second of the two names only."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    installation.load(_arguments())
    assert boto3.session.Session().region_name == "eu-west-1"


def test_a_stack_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": "ValidationError", "Message": "does not exist"}}, "DescribeStackResource")

    monkeypatch.setattr("boto3.client", lambda *_, **__: SimpleNamespace(describe_stack_resource=refuse))
    with pytest.raises(installation.InstallationError, match=r"stack gone: .*does not exist.*AWS_REGION"):
        installation.load(_arguments(stack="gone"))


def test_nothing_is_acknowledged_of_a_row_that_only_a_newer_release_can_read(command: Command, world: Lending) -> None:
    key = next(row.key for row in world.rows() if row.superseded_at)
    world.credentials.hold(UnreadableCredential(line=key.line, generation=key.generation, problem="state"))
    code, _, err = command("acknowledge", str(key))
    assert (code, err) == (1, f"credentials: credential {key} was written by a newer release: cannot read state\n")
    assert world.told(DetailType.CREDENTIAL_REVOCATION_ACKNOWLEDGED) == []
