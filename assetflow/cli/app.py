"""The `assetflow` command line application. It imports a command when the command is called, so that each starts fast.

A command is a function that prints, and returns its exit status or `None`. A command with subcommands is an `App`.
"""

from __future__ import annotations

from importlib.metadata import version

import cyclopts

app = cyclopts.App(
    name="assetflow",
    help="Flows that run when their data is updated.",
    help_epilogue="With --debug, a command that fails unexpectedly shows its traceback.",
    version=lambda: version("assetflow"),
    version_flags=["--version"],
    result_action="return_value",
    # An option without a value is on or off; only those that name their opposite have one.
    default_parameter=cyclopts.Parameter(negative=""),
)
app.command("assetflow.cli.assets:app", name="assets", help="Assets: what tasks update and flows run on.")
app.command(
    "assetflow.cli.backfill:app",
    name="backfill",
    help="Run a consumer for past keys, or backfill an asset and what lies below it.",
)
app.command("assetflow.cli.consumers:app", name="consumers", help="Consumers: flows that run on assets.")
app.command("assetflow.cli.database:app", name="database", help="The ledger's database: upgrade, check and prune it.")
app.command("assetflow.cli.deadlines:app", name="deadlines", help="Deadlines that were missed.")
app.command("assetflow.cli.decisions:app", name="decisions", help="Decisions: why runs were started.")
app.command("assetflow.cli.diff:diff", name="diff", help="Show what a deploy would change, before it.")
app.command(
    "assetflow.cli.stacks:demo", name="demo", help="Run the example pipelines on real data and show what happened."
)
app.command("assetflow.cli.stacks:dev", name="dev", help="Start Prefect, the evaluator and a worker for this project.")
app.command("assetflow.cli.emit:emit", name="emit", help="Record that an asset was updated.")
app.command(
    "assetflow.cli.evaluator:app",
    name="evaluator",
    help="The process that decides which flows run and starts their runs.",
)
app.command(
    "assetflow.cli.events:app", name="events", help="Events: updates of assets, and what each consumer did with them."
)
app.command("assetflow.cli.explain:explain", name="explain", help="Explain why something runs, or why it does not.")
app.command("assetflow.cli.freshness:freshness", name="freshness", help="Show how fresh assets with a policy are.")
app.command("assetflow.cli.init:init", name="init", help="Write the files of a project.")
app.command("assetflow.cli.explain:lineage", name="lineage", help="Show what leads to an asset, and what follows.")
app.command("assetflow.cli.lint:lint", name="lint", help="Say what is wrong with the schedules of flows.")
app.command("assetflow.cli.emit:observe", name="observe", help="Record which version of a source was seen.")
app.command("assetflow.cli.partitions:app", name="partitions", help="Partitions: what has run for which key.")
app.command(
    "assetflow.cli.freshness:plan",
    name="plan",
    help="Show what Eager and Lazy consumers would run, and what holds them back.",
)
app.command("assetflow.cli.queue:app", name="queue", help="Queues: updates that consumers have not consumed yet.")
app.command(
    "assetflow.cli.freshness:retry", name="retry", help="Let a consumer try again, or run its failed runs again."
)
app.command("assetflow.cli.runs:app", name="runs", help="Flow runs that assetflow started.")
app.command("assetflow.cli.server:app", name="server", help="Evaluator, REST API and pages in one process.")
app.command("assetflow.cli.simulate:simulate", name="simulate", help="Show what schedules would do with events.")
app.command("assetflow.cli.stacks:app", name="spark", help="Spark's own local Connect server of this project.")
app.command("assetflow.cli.status:status", name="status", help="Show whether everything works, and what is waiting.")
app.command("assetflow.cli.trace:trace", name="trace", help="Show what an update or a run led to.")
app.command("assetflow.cli.watcher:app", name="watcher", help="The process that watches queues and files.")
app.command("assetflow.cli.watchers:app", name="watchers", help="Watchers: queues and files that update assets.")
app.command(
    "assetflow.cli.version:version", name="version", help="Show the versions of assetflow and of what it runs on."
)
# What it installs is a script of the shell: to complete a word, no Python starts.
app.register_install_completion_command(  # pyright: ignore[reportUnknownMemberType]
    help="Install completion for your shell (bash, zsh, fish)."
)
