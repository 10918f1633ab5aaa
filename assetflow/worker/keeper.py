"""Keep templates running for a worker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from prefect.logging import get_logger
from prefect.settings import get_current_settings

from assetflow.worker import client

logger = get_logger("worker.assetflow")

# Elsewhere, libraries of the system do not survive a fork.
CAN_FORK = sys.platform == "linux"
MOST_TEMPLATES = 4


class TemplateProcess:
    """A template that imports modules besides what all flow runs need.

    Parameters:
        place: its socket. It listens as soon as it has imported everything.
    """

    def __init__(self, place: Path, modules: Sequence[str]) -> None:
        self._place = place
        self._has_listened = False
        command = [sys.executable, "-m", "assetflow.worker.template", str(place), *modules]
        # Flow runs get the worker's settings in the same way. A child with the same ones need not read them.
        env = dict(os.environ) | get_current_settings().to_environment_variables(exclude_unset=True)
        # A session of its own: Ctrl-C in the worker's terminal is for the clients.
        self._process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )

    @property
    def takes_runs(self) -> bool:
        """False if it has ended, or has listened and does no more. Until it listens, clients become processes."""
        exists = self._place.exists()
        has_closed = self._has_listened and not exists
        self._has_listened |= exists
        return self._process.poll() is None and not has_closed

    def command(self, module: str) -> list[str]:
        """Return the command that runs a module in its child."""
        return [sys.executable, "-S", "-E", client.__file__, str(self._place), module]

    def let_go(self) -> None:
        """Let it end when its last child has ended."""
        if self._process.stdin is not None:
            self._process.stdin.close()


class TemplateKeeper:
    """A context in which a template runs for each set of modules, at most `MOST_TEMPLATES`.

    One that has ended or takes no more runs is replaced before its next run.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="assetflow-worker-"))
        self._number = 0
        # The least recently used one comes first.
        self._templates: dict[tuple[str, ...], TemplateProcess] = {}

    def __enter__(self) -> Self:
        if CAN_FORK:
            self._find(())
        else:
            logger.info("flow runs are started as new processes: forking is not safe on %s", sys.platform)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the templates end when their last children have ended."""
        while self._templates:
            self._let_oldest_go()
        shutil.rmtree(self._folder, ignore_errors=True)

    def command(self, module: str, preloaded: Sequence[str] = ()) -> list[str] | None:
        """Return the command that runs a module in the child of a template; `None` where forking is not safe.

        Parameters:
            preloaded: what the template imports, besides what all runs need.
        """
        return self._find(tuple(preloaded)).command(module) if CAN_FORK else None

    def _find(self, modules: tuple[str, ...]) -> TemplateProcess:
        """Return the template for some modules, and start it if there is none that takes runs."""
        template = self._templates.pop(modules, None)
        if template is None or not template.takes_runs:
            if template is not None:
                template.let_go()
            self._number += 1
            template = TemplateProcess(self._folder / f"{self._number}.socket", modules)
        self._templates[modules] = template
        if len(self._templates) > MOST_TEMPLATES:
            self._let_oldest_go()
        return template

    def _let_oldest_go(self) -> None:
        self._templates.pop(next(iter(self._templates))).let_go()
