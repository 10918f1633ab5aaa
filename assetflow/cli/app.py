"""The `assetflow` command line application. It imports a command when the command is called, so that each starts fast.

A command is a function that prints, and returns its exit status or `None`. A command with subcommands is an `App`.
"""

from __future__ import annotations

import cyclopts


def _version() -> str:
    # Only this option needs to know which packages are installed.
    from importlib.metadata import version

    return version("assetflow")


app = cyclopts.App(
    name="assetflow",
    help="Flows that run when their data is updated.",
    help_epilogue="With --debug, a command that fails unexpectedly shows its traceback.",
    version=_version,
    version_flags=["--version"],
    result_action="return_value",
    # An option without a value is on or off; only those that name their opposite have one.
    default_parameter=cyclopts.Parameter(negative=""),
)
# Each command: where it is below `assetflow.cli`, and its help.
_COMMANDS = {
    "assets": ("assets:app", "Assets: what tasks update and flows run on."),
    "backfill": ("backfill:app", "Run a consumer for past keys, or backfill an asset and what lies below it."),
    "consumers": ("consumers:app", "Consumers: flows that run on assets."),
    "database": ("database:app", "The ledger's database: upgrade, check and prune it."),
    "deadlines": ("freshness:deadlines_app", "Deadlines that were missed."),
    "decisions": ("runs:decisions_app", "Decisions: why runs were started."),
    "diff": ("project:diff", "Show what a deploy would change, before it."),
    "demo": ("stacks:demo", "Run the example pipelines on real data and show what happened."),
    "dev": ("stacks:dev", "Start Prefect, the evaluator and a worker for this project."),
    "emit": ("emit:emit", "Record that an asset was updated."),
    "evaluator": ("processes:evaluator_app", "The process that decides which flows run and starts their runs."),
    "events": ("events:app", "Events: updates of assets, and what each consumer did with them."),
    "explain": ("explain:explain", "Explain why something runs, or why it does not."),
    "freshness": ("freshness:freshness", "Show how fresh assets with a policy are."),
    "init": ("init:init", "Write the files of a project."),
    "lineage": ("explain:lineage", "Show what leads to an asset, and what follows."),
    "lint": ("project:lint", "Say what is wrong with the schedules of flows."),
    "observe": ("emit:observe", "Record which version of a source was seen."),
    "partitions": ("partitions:app", "Partitions: what has run for which key."),
    "plan": ("freshness:plan", "Show what Eager and Lazy consumers would run, and what holds them back."),
    "queue": ("events:queue_app", "Queues: updates that consumers have not consumed yet."),
    "retry": ("freshness:retry", "Let a consumer try again, or run its failed runs again."),
    "runs": ("runs:app", "Flow runs that assetflow started."),
    "server": ("server:app", "Evaluator, REST API and pages in one process."),
    "simulate": ("simulate:simulate", "Show what schedules would do with events."),
    "spark": ("stacks:app", "Spark's own local Connect server of this project."),
    "status": ("status:status", "Show whether everything works, and what is waiting."),
    "trace": ("explain:trace", "Show what an update or a run led to."),
    "watcher": ("processes:watcher_app", "The process that watches queues and files."),
    "watchers": ("watchers:app", "Watchers: queues and files that update assets."),
    "version": ("version:version", "Show the versions of assetflow and of what it runs on."),
}
for _name, (_place, _help) in _COMMANDS.items():
    app.command(f"assetflow.cli.{_place}", name=_name, help=_help)
# What it installs is a script of the shell: to complete a word, no Python starts.
app.register_install_completion_command(  # pyright: ignore[reportUnknownMemberType]
    help="Install completion for your shell (bash, zsh, fish)."
)
