"""`assetflow init`: write the files of a project."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from assetflow.cli.output import show
from assetflow.errors import InvalidProject
from assetflow.stack.new_project import Target, begin_project, write_deployment


def init(*, deploy: Target | None = None) -> None:
    """Write the files of a new project into this folder, or add them to a project that is there.

    The project is that of the tutorial: two flows, `prefect.yaml`, a test and `.gitignore`. No file is overwritten.

    Parameters
    ----------
    deploy
        Write only what runs a project elsewhere, to `deployments/`: systemd units for one machine, or the settings and
        the Compose file of several servers.
    """
    folder = Path.cwd()
    done = begin_project(folder) if deploy is None else write_deployment(folder, deploy)
    after = "Start it with: assetflow dev" if deploy is None else f"Read deployments/{deploy}/README.md"
    try:
        lines = [Text(line) for line in done]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidProject(
            f"a file of the project cannot be read or written: {error}", fix="Mend it, then run this again"
        ) from error
    show(*lines, Text(), Text(after))
