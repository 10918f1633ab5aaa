"""Every declaration of a flow survives its stored text: those of all conformance scenarios."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assetflow.core.simulate import read_scenario
from assetflow.core.values.assets import AssetAlias
from assetflow.core.wire.declarations import FlowDeclaration, declaration_from_text, declaration_to_text
from assetflow.errors import AssetflowError, InvalidSchedule

CONFORMANCE = Path(__file__).parents[1] / "conformance"
FOLDERS = ("cases", "time", "freshness", "more")


def declarations(folder: str) -> Iterator[FlowDeclaration]:
    """Yield what the flows of all scenarios of a folder declare; what the contract refuses is left out."""
    for file in sorted((CONFORMANCE / folder).glob("*.json")):
        if ".expected" not in file.name:
            for scenario in json.loads(file.read_text()):
                for spec in read_scenario(scenario).consumers.values():
                    with suppress(AssetflowError):
                        yield FlowDeclaration(spec.options(), (*spec.declares(), AssetAlias("x", group="g")))


def depth(value: Any) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, members), default=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("folder", FOLDERS)
def test_declaration_survives_its_text_which_is_flat(folder: str) -> None:
    """Prefect loses a parameter schema that is nested too deep."""
    found = list(declarations(folder))
    assert len(found) > 20
    for declaration in found:
        text = declaration_to_text(declaration)
        assert replace(declaration_from_text(text), outputs=()) == declaration
        assert declaration_to_text(declaration_from_text(text)) == text
        assert depth(json.loads(text)) < 12


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        '{"version":3}',
        '{"version":2,"needs":["weather"]}',
        '{"version":2,"nodes":[{"asset":"a"},["times",1,0]]}',
        '{"version":2,"nodes":[{"asset":"a"},["since",1,{"kind":"sundial"}]]}',
        '{"version":1,"deadline":{"after":60}}',
        '{"version":1,"nodes":[{"asset":"a"}],"intake":{"max_wait":60}}',
        '{"version":1,"nodes":[["all",2]]}',
        '{"version":1,"nodes":[{"asset":"s3://"}]}',
        '{"version":1,"nodes":[{"planet":"mars"}]}',
        '{"version":1,"partitioning":{"default":"identity","mappers":[[{"alias":"x"},"identity"]]}}',
        '{"version":1,"timetable":{"kind":"sundial"}}',
        '{"version":1,"while_paused":"dance"}',
    ],
)
def test_damaged_text_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InvalidSchedule, match="deployment hello"):
        declaration_from_text(text, where="deployment hello")
