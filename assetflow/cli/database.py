"""`assetflow database upgrade|check|prune`: maintain the ledger's database."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import cyclopts
from rich.text import Text

from assetflow.cli.output import facts_table, iso, table, tell, text
from assetflow.cli.values import Age, AsJson
from assetflow.core.values.words import at
from assetflow.ledger import ledger as upkeep

app = cyclopts.App(name="database", help="The ledger's database: upgrade, check and prune it.")

_WORDS = {
    "up to date": ("sound, and has the version that this assetflow needs", "green"),
    "older": ("older than this assetflow: stop the evaluators, then run `assetflow database upgrade`", "red"),
    "newer": ("newer than this assetflow: update assetflow", "red"),
    "empty": ("no ledger yet: the first evaluator creates one, or `assetflow database upgrade`", "yellow"),
    "damaged": ("damaged", "red"),
}


@app.command
def upgrade(*, json: AsJson = False) -> None:
    """Upgrade the tables to the version that this assetflow needs, or create them, in one transaction.

    A ledger on SQLite is also upgraded when a process opens it to write; a ledger on Postgres only by this command. An
    upgrade waits for another upgrade that is running, and does not begin while an evaluator is running."""
    done = upkeep.upgrade()
    begun = "created" if done.before is None else f"upgraded from version {done.before}"
    words = f"is {begun}, and has version {done.after}"
    if done.before == done.after:
        words = f"has version {done.after} already; nothing to do"
    document = {"ledger": done.place, "before": done.before, "after": done.after}
    tell(document, text(f"{done.place} {words}"), json=json)


@app.command
def check(*, json: AsJson = False) -> int:
    """Check that the tables are those that this assetflow needs and, on SQLite, that the file is not damaged.

    The exit status is 0 if so, and 1 if not. The command reads a SQLite file from beginning to end."""
    found = upkeep.check()
    document = {
        "ok": found.state == "up to date",
        "state": found.state,
        "ledger": found.place,
        "database": found.server,
        "version": found.version,
        "needed": found.needed,
        "faults": list(found.faults),
    }
    facts = {
        "ledger": text(found.place),
        "database": text(found.server),
        "version": text(found.version or "none"),
        "state": Text(*_WORDS[found.state]),
    }
    tell(document, facts_table(facts.items()), *(text(fault, "red") for fault in found.faults), json=json)
    return int(found.state != "up to date")


@app.command
def prune(*, older_than: Age, dry_run: bool = False, json: AsJson = False) -> None:
    """Delete old events with their receipts, decisions whose runs have ended, and assetflow's artifacts in Prefect.

    The command keeps what is still needed: queued events, decisions without a run and the events they consumed, the
    newest update of each asset, and decisions for partitions. It may run beside an evaluator. If it is killed, the next
    call continues.

    Parameters
    ----------
    older_than
        Delete what is older than this, such as 90d or 26w; at least 8d.
    dry_run
        Only count what would be deleted.
    """
    # Import the HTTP client only here: other commands on the database do not need it.
    from assetflow.evaluator.process.binding import prune as prune_all

    done = asyncio.run(prune_all(older_than, datetime.now(UTC), dry_run=dry_run))
    rows = {
        "events": done.rows.events,
        "receipts": done.rows.receipts,
        "decisions": done.rows.decisions,
        "refused events": done.rows.refused,
        "runs of Eager and Lazy flows": done.rows.runs,
        "missed deadlines": done.rows.deadlines,
        "changes of freshness": done.rows.changes,
        "ends of runs": done.rows.ends,
        "failed checks": done.rows.checks,
    }
    artifacts = {f"artifacts: {kind}": number for kind, number in done.artifacts.items()}
    counted = {name.replace(": ", "_").replace(" ", "_"): number for name, number in (rows | artifacts).items()}
    made = table("", "would go" if dry_run else "gone", right=("would go" if dry_run else "gone",))
    for name, number in (rows | artifacts).items():
        made.add_row(Text(name), Text(str(number)))
    document = {"before": iso(done.before), "dry_run": dry_run, **counted}
    tell(document, made, text(f"older than {at(done.before)}"), json=json)
