"""One tree of errors: what happened, where, and what to do about it.

Every error that assetflow raises on purpose is an `AssetflowError`. Its text is written for the person who has to act:
the command line prints it as it stands, the API sends its parts, and nobody has to read a traceback.
"""

from __future__ import annotations

from typing import ClassVar


class AssetflowError(Exception):
    """Something that assetflow refuses or cannot do.

    Parameters:
        message: what happened, in a sentence, naming the value concerned.
        where: the place: a file, a task, a step, an address. Empty when the caller knows it.
        fix: what to do about it, in a sentence.
        rule: the number of the contract's rule that is not met ("1.4"), if it is one.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, where: str = "", fix: str = "", rule: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.fix = fix
        self.rule = rule

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        if self.fix:
            text = f"{text.rstrip('.')}. {self.fix}"
        return text

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (task runners pickle them); keyword arguments would be lost by the default.
        return (_rebuild, (type(self), self.message, self.where, self.fix, self.rule))

    def at(self, where: str) -> AssetflowError:
        """The same error with the place named; an inner place stays readable behind an outer one."""
        place = f"{where}: {self.where}" if self.where else where
        error = type(self)(self.message, where=place, fix=self.fix, rule=self.rule)
        error.__cause__ = self.__cause__ or self
        return error

    def as_dict(self) -> dict[str, str | None]:
        """The parts as JSON: `code`, `error`, `where`, `fix`, `rule`."""
        return {"code": self.code, "error": self.message, "where": self.where, "fix": self.fix, "rule": self.rule}


def _rebuild(kind: type[AssetflowError], message: str, where: str, fix: str, rule: str | None) -> AssetflowError:
    return kind(message, where=where, fix=fix, rule=rule)


class AssetflowWarning(UserWarning):
    """Something that works, but probably not as meant."""


# What a user writes


class InvalidAsset(AssetflowError, ValueError):
    """A URI, a name, a reference or an alias that breaks chapter 1 of the contract."""

    code = "invalid-asset"


class InvalidSchedule(AssetflowError, ValueError):
    """A `schedule=` that is no schedule, or one that cannot work."""

    code = "invalid-schedule"


class InvalidTimetable(InvalidSchedule):
    """A cron text, a time zone or an interval that cannot be read."""

    code = "invalid-timetable"


class InvalidPartition(AssetflowError, ValueError):
    """A mapper, a window or a wait policy that cannot work (chapter 5)."""

    code = "invalid-partition"


class MappingError(AssetflowError, ValueError):
    """A partition key that its mapper cannot map (5.4)."""

    code = "not-mapped"


class InvalidEvent(AssetflowError, ValueError):
    """An update that breaks chapters 1 or 2: an extra that is no JSON object, a blank key."""

    code = "invalid-event"


class TooLarge(AssetflowError, ValueError):
    """Something that is larger than assetflow takes."""

    code = "too-large"


class OutletError(AssetflowError):
    """A task said something about an asset or an alias that is not among its outlets (2.3)."""

    code = "not-an-outlet"


class NameTaken(InvalidAsset):
    """A name that belongs to another URI (1.2)."""

    code = "name-taken"


class InvalidScenario(AssetflowError, ValueError):
    """A scenario file that is not in the format of `assetflow simulate`."""

    code = "invalid-scenario"


class InvalidFlow(AssetflowError, TypeError):
    """A decorated function that cannot be a flow or a task as asked."""

    code = "invalid-flow"


class InvalidListener(AssetflowError, TypeError):
    """Something that cannot be called as a listener."""

    code = "invalid-listener"


class InvalidCall(AssetflowError, ValueError):
    """A command that was called with what does not go together, or with what it cannot read."""

    code = "invalid-call"


class Conflict(AssetflowError):
    """Something that cannot be done as things are: several flows make an asset, and none was named."""

    code = "conflict"


class UnknownConsumer(AssetflowError, LookupError):
    """No consumer has this name."""

    code = "unknown-consumer"


class UnknownAsset(AssetflowError, LookupError):
    """No asset has this URI or name."""

    code = "unknown-asset"


class UnknownEvent(AssetflowError, LookupError):
    """No event, decision or flow run has this id."""

    code = "unknown-event"


# What surrounds us


class InvalidSettings(AssetflowError, ValueError):
    """A setting that cannot be used as it stands."""

    code = "invalid-settings"


class ApiUnreachable(AssetflowError, ConnectionError):
    """assetflow's API does not answer."""

    code = "api-unreachable"


class ApiRefused(AssetflowError):
    """assetflow's API answered a request with an error that a retry does not change."""

    code = "api-refused"


class RecordingFailed(AssetflowError):
    """An update could not be recorded; to record it again under the same id is safe."""

    code = "recording-failed"


class PrefectUnreachable(AssetflowError, ConnectionError):
    """Prefect's API does not answer."""

    code = "prefect-unreachable"


class PrefectRefused(AssetflowError):
    """Prefect answered a request with an error that a retry does not change."""

    code = "prefect-refused"


class UnsupportedDelivery(InvalidSchedule):
    """A condition that Prefect's own triggers would decide wrongly (`ASSETFLOW_DELIVERY=prefect`)."""

    code = "unsupported-delivery"


class LedgerError(AssetflowError):
    """The ledger cannot be used."""

    code = "ledger"


class LedgerLocked(LedgerError):
    """Another process holds the ledger."""

    code = "ledger-locked"


class LedgerVersion(LedgerError):
    """The ledger's tables and this program are of different versions, or the tables are not what a version has."""

    code = "ledger-version"


class LedgerForeign(LedgerError):
    """The ledger and the Prefect server do not belong together."""

    code = "ledger-foreign"


class EvaluatorRunning(LedgerError):
    """Another evaluator works on this ledger."""

    code = "evaluator-running"


class LeaseLost(LedgerError):
    """This evaluator stood still so long that another one may have taken over; what it was about to write is not."""

    code = "lease-lost"


class PortInUse(AssetflowError):
    """A port that was asked for is taken."""

    code = "port-in-use"


class StackFailed(AssetflowError):
    """A process of the embedded stack did not start, or ended on its own."""

    code = "stack-failed"


class JavaNotFound(AssetflowError):
    """There is no Java that Spark can run on."""

    code = "java-not-found"


class SparkNotInstalled(AssetflowError, ImportError):
    """PySpark, or a package that its Connect client needs, is not there."""

    code = "spark-not-installed"


class SparkUnreachable(AssetflowError, ConnectionError):
    """A Spark master or Connect server does not answer."""

    code = "spark-unreachable"


class SparkSettingsConflict(AssetflowError):
    """The live Spark session cannot be what is asked for."""

    code = "spark-settings-conflict"


class SparkStopped(AssetflowError):
    """The Spark work of a task was stopped, because its flow run was cancelled."""

    code = "spark-stopped"


class PublishFailed(AssetflowError):
    """A dataset could not be published; the old data is whole."""

    code = "publish-failed"


class TimedOut(AssetflowError, TimeoutError):
    """Something that was waited for did not come in time."""

    code = "timed-out"
