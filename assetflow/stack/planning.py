"""The deployments that a project would make, read as an evaluator reads them from Prefect."""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from prefect import Flow

from assetflow.core.wire.deployments import Deployed
from assetflow.errors import AssetflowError, InvalidFlow
from assetflow.prefect_io.deployments import planned
from assetflow.stack.flow_files import declaration_of, imported
from assetflow.stack.project import Deployment, read_project


@dataclass
class Plan:
    """The deployments of a project; one that a deploy would refuse has its problem.

    Attributes:
        problems: what could not be read: the file with the flow, and why.
        is_whole: whether what is missing among them would be removed.
    """

    deployments: list[Deployed] = field(default_factory=list[Deployed])
    problems: dict[str, str] = field(default_factory=dict[str, str])
    is_whole: bool = True


def plan_of(folder: Path, files: Collection[Path] | None = None) -> Plan:
    """Return the deployments of `prefect.yaml`. If one cannot be read, nothing counts as removed.

    Parameters:
        files: only the deployments of flows in these files.

    Raises:
        InvalidProject: `prefect.yaml` does not exist, or is not valid.
    """
    found = Plan()
    for each in read_project(folder, checked=False).deployments:
        if files is not None and (folder / each.file).resolve() not in files:
            continue
        with redirect_stdout(sys.stderr):
            try:
                found.deployments.append(_planned(folder, each))
            except AssetflowError as error:
                found.problems[each.entrypoint] = error.message
                found.is_whole = False
    return found


def _planned(folder: Path, deployment: Deployment) -> Deployed:
    flow: object = getattr(imported(folder / deployment.file), deployment.function, None)
    if not isinstance(flow, Flow):
        raise InvalidFlow("the file has no such flow", where=deployment.file, fix="Name a function with @flow")
    made = planned(cast("Flow[..., Any]", flow), deployment.name, deployment.entrypoint, deployment.given)
    if made.declaration is None and made.problem is None:
        return replace(made, declaration=declaration_of(flow))
    return made
