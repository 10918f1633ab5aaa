"""Draws docs/images/performance.svg from the figures in benchmarks/results: `make charts`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl  # pyright: ignore[reportMissingImports]

mpl.use("svg")  # There is no screen.

from matplotlib import pyplot as plt  # pyright: ignore[reportMissingImports]

RESULTS = Path(__file__).parent / "results"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "performance.svg"
OURS, THEIRS, GREY = "#2a6f97", "#c9793b", "#8a8a8a"


def results(name: str) -> dict[str, Any]:
    """What a benchmark has printed."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def engine(axes: Any) -> None:
    """CPU time for each event, at both sizes."""
    found = results("engine")
    values = [found["cpu_ms_per_event_1k"], found["cpu_ms_per_event_10k"]]
    bars = axes.bar(["1k events,\n1k consumers", "10k events,\n10k consumers"], values, width=0.5, color=OURS)
    axes.bar_label(bars, fmt="%.2f ms")
    axes.set_title("CPU time per event")
    axes.set_ylim(0, 1.3 * max(values))


def latency(axes: Any) -> None:
    """From an update to its run: median and 95th percentile of both systems, each condition."""
    rows = results("latency")["roads"]
    for place, system in enumerate(("assetflow", "prefect")):
        mine = [row for row in rows if row["system"] == system]
        labels = [(row["condition"], kind) for row in mine for kind in ("median", "p95")]
        values = [row[f"{kind}_ms"] for row in mine for kind in ("median", "p95")]
        at = [number + 0.4 * place for number in range(len(values))]
        axes.bar(at, values, width=0.38, color=(OURS, THEIRS)[place], label=system)
        axes.set_xticks([number + 0.2 for number in range(len(values))], [f"{a},\n{b}" for a, b in labels])
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.set_title("From an update to its flow run")
    axes.legend(frameon=False)


def growth(axes: Any) -> None:
    """CPU time for each event, over the number of consumers."""
    rows = results("growth")["consumers"]
    values = [row["cpu_ms_per_event"] for row in rows]
    axes.plot([row["consumers"] for row in rows], values, marker="o", color=OURS)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.3 * max(values))
    axes.set_xlabel("consumers")
    axes.set_ylabel("ms")
    axes.set_title("CPU time per event, as consumers grow")


def main() -> None:
    """Draw the picture: a panel for each benchmark whose figures are there."""
    # The same figures give the same file, byte for byte.
    mpl.rcParams |= {"svg.hashsalt": "assetflow", "font.size": 9, "axes.edgecolor": GREY}
    drawn = [draw for draw in (engine, latency, growth) if (RESULTS / f"{draw.__name__}.json").exists()]
    figure, panels = plt.subplots(1, len(drawn), figsize=(3.7 * len(drawn), 3.2), layout="constrained", squeeze=False)
    for draw, axes in zip(drawn, panels[0], strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
