"""The client's page and its code name the same things, in both directions."""

import dataclasses
import inspect
from typing import Any

import pytest
from tests.docs.test_coverage import first_names, methods, page, sections, signature

import treadle.client
from treadle.client import Client, Functions, create_async_client, create_client, verify_signature
from treadle.client.course import FIRST_PAUSE, MOST_WAITED
from treadle.client.settings import MOST_RETRIES

PAGE = page("reference/client.md")
SECTIONS = sections(PAGE)
CALLED = {"create_client": create_client, "verify_signature": verify_signature}


def test_every_public_name_is_documented() -> None:
    named = {name for name in treadle.client.__all__ if f"`{name}`" in PAGE or name in SECTIONS}
    assert {*treadle.client.__all__} - named == {"AsyncFunctions", "Functions"}, "which are `functions`"


@pytest.mark.parametrize("name", CALLED)
def test_functions_are_written_as_they_are_and_every_parameter_is_explained(name: str) -> None:
    assert f"`{signature(name, CALLED[name])}`" in SECTIONS[name].splitlines()
    assert {*inspect.signature(CALLED[name]).parameters} <= {*first_names(SECTIONS[name])}


def test_both_makers_take_the_same() -> None:
    assert signature("create_client", create_client) == signature("create_client", create_async_client)


def test_every_operation_has_a_section_with_its_signature_and_its_parameters() -> None:
    documented = sections(SECTIONS["functions"], "###")
    operations: dict[str, Any] = methods(Functions)
    assert [*documented] == [f"functions.{name}" for name in operations]
    for name, operation in operations.items():
        text = documented[f"functions.{name}"]
        written = f"`{signature(name, operation)}`"
        assert written in text.splitlines(), written
        for parameter in [*inspect.signature(operation).parameters][1:]:
            assert f"`{parameter}`" in text.replace(written, ""), f"{name}: {parameter} is not explained"


def test_what_a_client_has_is_documented() -> None:
    documented = {name.removeprefix("client.").partition("(")[0] for name in first_names(SECTIONS["create_client"])}
    public = {name for name in vars(Client) if not name.startswith("_")} - {"run"}  # which is for `functions`
    assert public <= documented


@pytest.mark.parametrize("name", ["Job", "CronJob"])
def test_every_field_is_documented(name: str) -> None:
    assert first_names(SECTIONS[name]) == [field.name for field in dataclasses.fields(getattr(treadle.client, name))]


def test_every_error_is_documented() -> None:
    errors = [name for name, value in vars(treadle.client.errors).items() if inspect.isclass(value)]
    assert {*first_names(SECTIONS["Errors"].partition("###")[0])} == {*errors} - {"ClientError"}


def test_the_numbers_are_right() -> None:
    assert f"0 to {MOST_RETRIES} " in SECTIONS["create_client"]
    assert f"pauses of {FIRST_PAUSE:g} s" in PAGE
    assert f"more than {MOST_WAITED:g} s" in PAGE
    for name, parameter in inspect.signature(create_client).parameters.items():
        if isinstance(parameter.default, float):
            assert f"| `{name}` | {parameter.default:g} s |" in SECTIONS["create_client"]
