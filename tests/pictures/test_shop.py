"""The shop of the pictures has what its pictures are to show."""

from assetflow.stack.flow_files import read_project
from assetflow.stack.linting import LintConfig, lint_files
from tests.pictures.life import SHOP

FLOWS = SHOP / "flows.py"


def test_the_flows_are_as_a_user_should_write_them() -> None:
    assert lint_files([FLOWS], LintConfig(external=["s3://shop-landing/*"])) == []


def test_every_flow_is_deployed() -> None:
    text = FLOWS.read_text(encoding="utf-8")
    entrypoints = [each.entrypoint for each in read_project(SHOP).deployments]
    assert len(entrypoints) == text.count("\n@asset(")
