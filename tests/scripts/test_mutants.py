"""`scripts/mutants` changes one place at a time, and knows which tests could notice it."""

import ast
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "mutants"))


def mutants(folder: Path, text: str) -> set[str]:
    """Return what the statements of a file are changed to, one place at a time."""
    place = folder / "rules.py"
    place.write_text(text)
    SCRIPT["mutants_of"].__globals__["ROOT"] = folder
    return {mutant.applied(text.encode()).decode().strip() for mutant in SCRIPT["mutants_of"](place)}


def test_the_places_of_a_condition_are_changed_one_by_one(tmp_path: Path) -> None:
    assert mutants(tmp_path, "held = a < 1 and not b") == {
        "held = (a <= 1) and not b",
        "held = a < (2) and not b",
        "held = a < 1 and (b)",
        "held = (a < 1 or not b)",
        "held = (not b)",
        "held = (a < 1)",
    }


def test_what_no_running_program_reaches_is_left_alone(tmp_path: Path) -> None:
    assert mutants(tmp_path, "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    x = 1\ny: 'a | b'\n") == set()


def test_the_seed_chooses_the_same_mutants_and_all_of_them_are_python() -> None:
    fresh = runpy.run_path(str(ROOT / "scripts" / "mutants"))
    found = fresh["chosen"]()
    assert len(set(map(str, found))) > 280
    assert found == fresh["chosen"]()
    for mutant in found[:50]:
        ast.parse(mutant.applied((ROOT / mutant.file).read_bytes()))


def test_the_tests_of_a_module_begin_with_those_of_its_room() -> None:
    found = SCRIPT["tests_of"]("assetflow/core/rules/fold.py", ROOT)
    assert found[0].startswith("tests/core/rules/")
    assert "tests/conformance/test_cases.py" in found
    assert not [name for name in found if name.startswith("tests/web/")]
