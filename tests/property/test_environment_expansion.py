"""``$(VAR)``: against a reading of the grammar one character at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from nebula.kubernetes.environment import Environment, expand

from tests.support.pods import References, container, pod

pieces = st.lists(
    st.sampled_from(["$", "$$", "(", ")", "A", "B", "$(A)", "$(B)", "$$(A)", "x", " ", "\n"]), max_size=14
)
texts = pieces.map("".join)
names = st.sampled_from(["A", "B", "C", "D"])
values = st.dictionaries(names, texts, max_size=4)


def slowly(text: str, known: dict[str, str]) -> str:
    out, at = "", 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            out, at = out + text[at], at + 1
        elif text[at + 1] == "$":
            out, at = out + "$", at + 2
        elif text[at + 1] == "(" and ")" in text[at + 2 :]:
            end = text.index(")", at + 2)
            out, at = out + known.get(text[at + 2 : end], text[at : end + 1]), end + 1
        else:
            out, at = out + text[at : at + 2], at + 2
    return out


@given(texts, values)
def test_expansion_follows_the_grammar(text: str, known: dict[str, str]) -> None:
    assert expand(text, known) == slowly(text, known)


@given(texts)
def test_doubling_every_dollar_makes_a_text_literal(text: str) -> None:
    assert expand(text.replace("$", "$$"), {"A": "no", "B": "no"}) == text


@given(st.lists(st.tuples(names, texts), max_size=8))
def test_env_sees_earlier_names_only_and_the_last_of_a_name_wins(entries: list[tuple[str, str]]) -> None:
    known: dict[str, str] = {}
    for name, value in entries:
        known[name] = slowly(value, known)
    main = container(env=[{"name": name, "value": value} for name, value in entries])
    resolved = Environment(pod(main), main, References().api).resolve()
    assert {name: value.get_secret_value() for name, value in resolved.items()} == known


@given(st.lists(values, max_size=4), values)
def test_env_from_is_never_expanded_and_later_sources_win(sources: list[dict[str, str]], env: dict[str, str]) -> None:
    maps = {f"map-{index}": data for index, data in enumerate(sources)}
    main = container(
        envFrom=[{"configMapRef": {"name": name}} for name in maps],
        env=[{"name": name, "value": value} for name, value in env.items()],
    )
    known = {name: value for data in sources for name, value in data.items()}
    for name, value in env.items():
        known[name] = slowly(value, known)
    resolved = Environment(pod(main), main, References(config_maps=maps).api).resolve()
    assert {name: value.get_secret_value() for name, value in resolved.items()} == known
