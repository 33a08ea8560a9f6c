"""Writes the field table of ``docs/pods.md`` from the code's own: ``python -m local.pod_fields_doc``."""

from __future__ import annotations

from pathlib import Path

from nebula.kubernetes.workload_fields import FIELDS, Field, Treatment

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pods.md"
BEGIN = "<!-- fields: written by python -m local.pod_fields_doc -->"
END = "<!-- end of fields -->"


def table() -> str:
    """The table in Markdown, in the order of the field paths."""
    head = "| field of `spec` | met as | how | accepted without a word |\n|---|---|---|---|"
    return "\n".join([head, *(_row(field) for field in sorted(FIELDS, key=lambda field: field.path))])


def page(text: str) -> str:
    """The page with its table renewed; ValueError when the marks are missing."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise ValueError("the page has no place for the table")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def _row(field: Field) -> str:
    silent = "always" if field.quiet else ", ".join(f"`{_value(value)}`" for value in field.harmless)
    if field.treatment is Treatment.HONOURED or field.treatment is Treatment.CHANGED:
        silent = "always"
    return f"| `{field.path}` | {field.treatment} | {field.note} | {silent or 'only when empty'} |"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def main() -> None:
    """Renew the page in place."""
    PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()
