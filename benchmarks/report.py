"""What a benchmark prints: one JSON document with `--json`, else a table for people."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Figures = dict[str, Any]


def parser(description: str | None) -> ArgumentParser:
    """The options that every benchmark has."""
    made = ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print one JSON document")
    return made


def tell(figures: Figures, *, as_json: bool) -> None:
    """Print the figures, with the machine that they were measured on."""
    figures = figures | {"machine": machine()}
    if as_json:
        json.dump(figures, sys.stdout, indent=2)
        print()
        return
    table = Table(show_header=False)
    for name, value in figures.items():
        if not isinstance(value, list | Mapping):
            table.add_row(name, _shown(value))
    console = Console()
    console.print(table)
    for rows in figures.values():
        if isinstance(rows, list) and rows:
            console.print(_table(rows))


def machine() -> Figures:
    """Where and in what company this was measured; `load` is the average over the last minute."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def _table(rows: list[Mapping[str, object]]) -> Table:
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(_shown(value) for value in row.values()))
    return table


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
