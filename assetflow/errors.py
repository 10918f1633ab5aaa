"""One tree of errors: what happened, where, and what to do about it.

Every error that assetflow raises on purpose is an `AssetflowError`. Its text is written for the person who has to act:
the command line prints it as it stands, the API sends its parts, and nobody has to read a traceback.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, cast

if TYPE_CHECKING:
    from assetflow.core.values.events import CheckResult


class AssetflowError(Exception):
    """The base class of every error that assetflow raises on purpose.

    >>> from assetflow import Asset, AssetflowError
    >>> try:
    ...     Asset("s3:///orders")
    ... except AssetflowError as error:
    ...     print(error.code, error.rule)
    invalid-asset 1.4

    Parameters:
        message: what happened, in a sentence that names the value concerned.
        where: the place, such as a file, a task, a step or an address. Empty if the caller knows it.
        fix: what to do about it, in a sentence.
        rule: the number of the contract's rule that is broken ("1.4"), or `None`.
    """

    code: ClassVar[str] = "error"

    def __init_subclass__(cls) -> None:
        """Derive the code from the name of a class that has none of its own: `InvalidAsset` has `invalid-asset`."""
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

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
        # Task runners pickle errors to send them between processes; the default would lose keyword arguments.
        return (_rebuild, (type(self), self.message, self.where, self.fix, self.rule))

    def at(self, where: str) -> AssetflowError:
        """Return the same error at this place. The place that it already has is put after the new one."""
        place = f"{where}: {self.where}" if self.where else where
        error = type(self)(self.message, where=place, fix=self.fix, rule=self.rule)
        error.__cause__ = self.__cause__ or self
        return error

    def as_dict(self) -> dict[str, str | None]:
        """Return the parts as JSON: `code`, `error`, `where`, `fix`, `rule`."""
        return {"code": self.code, "error": self.message, "where": self.where, "fix": self.fix, "rule": self.rule}


@contextmanager
def places(**names: str) -> Generator[None]:
    """Rename the places of errors to the names that the user knows, as in `key="--key"`.

    Raises:
        AssetflowError: the error of the block, with its place renamed if it is one of `names`.
    """
    try:
        yield
    except AssetflowError as error:
        if error.where not in names:
            raise
        raise type(error)(error.message, where=names[error.where], fix=error.fix, rule=error.rule) from error


def _rebuild(kind: type[AssetflowError], message: str, where: str, fix: str, rule: str | None) -> AssetflowError:
    return kind(message, where=where, fix=fix, rule=rule)


def not_a(
    error: type[AssetflowError], value: object, kind: str, fix: str, *, where: str = "", rule: str | None = None
) -> AssetflowError:
    """Return the error for a value of the wrong type. If it is a class, the fix adds parentheses."""
    message = f"{value!r} is not {kind}"
    if isinstance(value, type):
        message, fix = f"{value.__name__} is a class, not {kind}", f"Write {value.__name__}(...)"
    return error(message, where=where, fix=fix, rule=rule)


class AssetflowWarning(UserWarning):
    """Something that works, but probably not as meant."""


# Errors in what a user writes


class InvalidAsset(AssetflowError, ValueError):
    """A URI, a name, a reference or an alias that breaks chapter 1 of the contract."""


class InvalidSchedule(AssetflowError, ValueError):
    """A `schedule=` that is not a schedule, or one that cannot work."""


class InvalidTimetable(InvalidSchedule):
    """A cron text, a time zone or an interval that cannot be read."""


class InvalidWatcher(AssetflowError, ValueError):
    """A watcher or its trigger that cannot work (contract chapter 10)."""


class WatchingFailed(AssetflowError):
    """A watcher cannot watch now; the process that watches tries again."""


class InvalidPartition(AssetflowError, ValueError):
    """A mapper, a window or a wait policy that cannot work (contract chapter 5)."""


class MappingError(AssetflowError, ValueError):
    """A partition key that its mapper cannot map (contract 5.4)."""

    code = "not-mapped"


class InvalidEvent(AssetflowError, ValueError):
    """An update that breaks chapters 1 or 2 of the contract: an extra that is not a JSON object, a blank key."""


class TooLarge(AssetflowError, ValueError):
    """Something that is larger than assetflow accepts."""


class OutletError(AssetflowError, KeyError):
    """A task recorded something about an asset or an alias that is not among its outlets (contract 2.3)."""

    code = "not-an-outlet"


class NameTaken(InvalidAsset):
    """A name that belongs to another URI (contract 1.2)."""


class InvalidScenario(AssetflowError, ValueError):
    """A scenario file that is not in the format of `assetflow simulate`."""


class InvalidFlow(AssetflowError, TypeError):
    """A decorated function that cannot be a flow or a task as asked."""


class InvalidCheck(AssetflowError, ValueError):
    """A check of data that cannot work, or that is not of an outlet (contract chapter 12)."""


class InvalidListener(AssetflowError, TypeError):
    """Something that cannot be called as a listener."""


class InvalidCall(AssetflowError, ValueError):
    """A call with arguments that cannot be given together, or that cannot be read."""


class Conflict(AssetflowError):
    """Something that is not possible now, such as when several flows make an asset and the call names none of them."""


class UnknownConsumer(AssetflowError, LookupError):
    """No consumer has this name."""


class WrongSignature(AssetflowError):
    """A message to a webhook that is not signed as its watcher asks."""


class UnknownWatcher(AssetflowError, LookupError):
    """No deployed asset has a watcher of this name."""


class UnknownAsset(AssetflowError, LookupError):
    """No asset has this URI or name."""


class UnknownBackfill(AssetflowError, LookupError):
    """No backfill of an asset has this number."""

    @classmethod
    def numbered(cls, number: int) -> UnknownBackfill:
        """Return the error for a number."""
        return cls(f"there is no backfill {number}", fix="`assetflow backfill ls` lists them")


class UnknownEvent(AssetflowError, LookupError):
    """No event, decision or flow run has this id."""


# Errors in the environment


class InvalidSettings(AssetflowError, ValueError):
    """A setting with a value that cannot be used."""


class ApiUnreachable(AssetflowError, ConnectionError):
    """assetflow's API does not answer."""


class ApiRefused(AssetflowError):
    """assetflow's API answered a request with an error that a retry does not change."""


class ApiNotAllowed(ApiRefused):
    """assetflow's API does not let the API key of a request do what the request asks for."""


class RecordingFailed(AssetflowError):
    """An update that was not recorded: Prefect refused it, or it has something that an update may not contain.

    Contract 2.7. Recording it again under the same id is safe.
    """


class PrefectUnreachable(AssetflowError, ConnectionError):
    """Prefect's API does not answer, or not now. The same request may succeed later.

    Attributes:
        retry_after: the seconds after which the server asks to be asked again, or `None` if it names no time.
        is_busy: it answers that it is too busy (429, 503).
    """

    retry_after: float | None = None
    is_busy: bool = False


class PrefectUnset(PrefectUnreachable):
    """PREFECT_API_URL is not set, or is not an address. Nothing was sent."""


class PrefectUnauthorized(PrefectUnreachable):
    """Prefect's API does not accept the key or the password. The same request succeeds when they are right."""


class PrefectRefused(AssetflowError):
    """Prefect answered a request with an error that a retry does not change."""


class PrefectNotFound(PrefectRefused):
    """Prefect does not know the object that a request names."""


class Unsendable(AssetflowError):
    """A request to Prefect that cannot be written: nothing was sent."""


class UnsupportedDelivery(InvalidSchedule):
    """A schedule that Prefect's own triggers cannot show (`deployment_triggers`)."""


class UnsupportedPrefect(AssetflowError):
    """The installed version of Prefect lacks something undocumented that a feature needs."""


class LedgerError(AssetflowError):
    """The ledger cannot be used."""

    code = "ledger"


class LedgerMissing(LedgerError):
    """The ledger does not exist yet, or is in another place."""


class LedgerLocked(LedgerError):
    """Another process holds the ledger."""


class StatementRefused(LedgerError):
    """A statement that the database refuses for a reason that assetflow does not know."""


class LedgerVersion(LedgerError):
    """The ledger's tables have another version than this program needs, or are damaged."""


class LedgerForeign(LedgerError):
    """The ledger and the Prefect server do not belong together."""


class EvaluatorRunning(LedgerError):
    """Another evaluator is running on this ledger."""


class LeaseLost(LedgerError):
    """The evaluator hung for so long that another one may have taken over; it has written nothing since."""


class PortInUse(AssetflowError):
    """The port to listen on is taken."""


class InvalidProject(AssetflowError, ValueError):
    """A project that cannot be deployed: its `prefect.yaml`, or a file named there, is not valid."""


class StackFailed(AssetflowError):
    """A process of the embedded stack that did not start, or ended on its own.

    Parameters:
        message: as in `AssetflowError`.
        where: as in `AssetflowError`.
        fix: as in `AssetflowError`.
        rule: as in `AssetflowError`.
        output: the last lines of the process's output.
    """

    def __init__(
        self, message: str, *, where: str = "", fix: str = "", rule: str | None = None, output: Iterable[str] = ()
    ) -> None:
        super().__init__(message, where=where, fix=fix, rule=rule)
        self.output = tuple(output)

    def __str__(self) -> str:
        return "\n    ".join((super().__str__(), *self.output))


class JavaNotFound(AssetflowError):
    """No Java that Spark can run on was found."""


class SparkNotInstalled(AssetflowError, ImportError):
    """PySpark, or a package that its Connect client needs, is not installed."""


class SparkUnreachable(AssetflowError, ConnectionError):
    """A Spark master or Connect server does not answer."""


class SparkSettingsConflict(AssetflowError):
    """The live Spark session cannot have the settings that a task asks for."""


class SparkStopped(AssetflowError):
    """The Spark work of a task was stopped because its flow run was cancelled."""


class PublishFailed(AssetflowError):
    """A dataset could not be published; on a local path, the old data is whole."""


class CheckFailed(AssetflowError):
    """New data that did not pass its checks, and was not published; the old data is whole. Contract 12.2.

    Attributes:
        results: what the checks found, those that passed too.
    """

    results: Sequence[CheckResult] = ()

    def at(self, where: str) -> CheckFailed:
        """Return the same error at this place, as `AssetflowError.at` does."""
        error = cast("CheckFailed", super().at(where))
        error.results = self.results
        return error

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"results": self.results})


class ReadFailed(AssetflowError):
    """The data of an asset could not be read, or its parts have columns that do not fit together."""


class TimedOut(AssetflowError, TimeoutError):
    """Something did not happen in time."""
