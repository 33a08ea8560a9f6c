"""The EventBridge envelope, and how a handler reads one: from an SQS record or bare.

Shape: https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nebula.events.details import Detail, DetailType

DetailT = TypeVar("DetailT", bound=Detail)


class MalformedEventError(ValueError):
    """The event cannot be read. The message names fields and rules, never values."""


class Envelope(BaseModel):
    """An event as EventBridge delivers it. Only what is used is required."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, populate_by_name=True)

    source: str = Field(min_length=1, max_length=256)
    detail_type: str = Field(alias="detail-type", min_length=1, max_length=128)
    detail: dict[str, Any]

    def read(self, model: type[DetailT]) -> DetailT:
        """The detail as ``model``; MalformedEventError when it does not fit."""
        if self.detail_type not in {str(t) for t in model.detail_types}:
            raise MalformedEventError(f"detail-type is not one that {model.__name__} describes")
        return _validated(model, self.detail, "detail")


def parse_envelope(event: object) -> Envelope:
    """Read an envelope; MalformedEventError names what is wrong."""
    if not isinstance(event, Mapping):
        raise MalformedEventError(f"event: expected an object, got {type(event).__name__}")
    return _validated(Envelope, dict(event), "event")


ModelT = TypeVar("ModelT", bound=BaseModel)


def _validated(model: type[ModelT], value: object, where: str) -> ModelT:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join([where, *(str(part) for part in item['loc'])])}: {item['type']}"
            for item in error.errors(include_input=False, include_url=False, include_context=False)[:5]
        )
        raise MalformedEventError(problems) from None


class Event(BaseModel):
    """One event to publish: ``source`` is ``nebula.<function>`` or ``nebula.kubernetes``."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    source: str
    detail_type: DetailType
    detail: Detail
