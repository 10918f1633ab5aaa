"""The address of something outside: a URL, an environment variable in it, or a block of Prefect.

A declaration travels through Prefect's API and is shown on pages, so it never holds a password. Contract 10.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from assetflow.errors import InvalidWatcher

if TYPE_CHECKING:
    from assetflow.core.values.assets import Asset
    from assetflow.core.values.events import AssetEvent


# Parts of a key in lower case and without separators, as in `db_password`, `clientSecret`, `X-Api-Key`.
_SECRET = re.compile(
    r"passw|passphrase|secret|token|apikey|accesskey|privatekey|accountkey|signingkey|encryptionkey|credential|"
    r"authorization|cookie|xamz|connectionstring"
)
_SHORT = frozenset({"auth", "pwd", "sig", "signature", "pin", "bearer", "jwt", "sas"})
_SEPARATORS = re.compile(r"[^a-z0-9]+")


def looks_secret(key: str) -> bool:
    """Return True if the value under this key is probably a secret."""
    plain = _SEPARATORS.sub("", key.lower())
    return plain in _SHORT or _SECRET.search(plain) is not None


REDACTED = "[redacted]"

_ADDRESS = re.compile(r"\b([a-z][a-z0-9+.-]*)://([^/?#\s\"<>]*)@", re.IGNORECASE)
_WEB = frozenset({"http", "https", "ws", "wss"})


def redact(data: object) -> object:
    """Return a copy of JSON data with `[redacted]` in place of each value under a key that looks secret.

    A list or object under such a key is replaced as a whole. `None` stays, and so do numbers under a key that counts
    tokens (`tokens`, `token_count`). The data may be nested to any depth.
    """
    holder: list[object] = [data]
    waiting: list[tuple[dict[str, object] | list[object], str | int, object]] = [(holder, 0, data)]
    while waiting:
        into, place, value = waiting.pop()
        if isinstance(value, Mapping):
            made: dict[str, object] = {}
            _put(into, place, made)
            for key, inner in cast("Mapping[object, object]", value).items():
                name = str(key)
                made[name] = REDACTED if _hidden(name, inner) else inner
                if made[name] is not REDACTED and isinstance(inner, Mapping | list | tuple):
                    waiting.append((made, name, cast(object, inner)))
        elif isinstance(value, list | tuple):
            items = list(cast("list[object]", value))
            _put(into, place, items)
            waiting += [(items, at, each) for at, each in enumerate(items) if isinstance(each, Mapping | list | tuple)]
    return holder[0]


def without_passwords(text: str) -> str:
    """Return the text without the user and password of each address in it.

    In `abfss://container@account.dfs.core.windows.net/`, the part before the `@` is not a user and stays.
    """
    return _ADDRESS.sub(_without_user, text)


def redacted(event: AssetEvent) -> AssetEvent:
    """Return an event without secrets in its extra, in its asset's extra and in its run's parameters."""
    run = event.origin.flow_run
    origin = event.origin
    if run is not None and run.parameters:
        origin = replace(origin, flow_run=replace(run, parameters=redacted_mapping(run.parameters)))
    return replace(event, asset=_described(event.asset), extra=redacted_mapping(event.extra), origin=origin)


def redacted_mapping(data: Mapping[str, object]) -> dict[str, object]:
    """Do what `redact` does, for an object."""
    return cast("dict[str, object]", redact(data))


def _described(asset: Asset) -> Asset:
    if not asset.extra:
        return asset
    return type(asset).known(asset.uri, asset.name, asset.group, redacted_mapping(asset.extra))


def _without_user(found: re.Match[str]) -> str:
    scheme, user = found.groups()
    return f"{scheme}://" if ":" in user or scheme.lower() in _WEB else found[0]


def _hidden(key: str, value: object) -> bool:
    if value is None or not looks_secret(key):
        return False
    counts = isinstance(value, int | float) and key.lower().endswith(("tokens", "count", "_total"))
    return not counts


def _put(into: dict[str, object] | list[object], place: str | int, value: object) -> None:
    if isinstance(into, list):
        into[cast(int, place)] = value
    else:
        into[cast(str, place)] = value


RULE = "10.1"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BLOCK = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True)
class PrefectBlock:
    """A block of Prefect that holds a URL.

    Attributes:
        name: its type and its name, such as `secret/orders-queue`.
    """

    name: str

    def __str__(self) -> str:
        return f'block("{self.name}")'


Address = str | PrefectBlock


def block(name: str) -> PrefectBlock:
    """Return the URL that a block of Prefect holds; the watching process reads it when it connects.

    >>> from assetflow.watchers import MessageQueueTrigger, block
    >>> MessageQueueTrigger(block("secret/orders-queue"), queue="orders").describe()
    'queue orders of block("secret/orders-queue")'

    Parameters:
        name: the slug of the block's type and the block's name, such as `secret/orders-queue`.

    Raises:
        InvalidWatcher: the name does not consist of a type and a name.
    """
    if not isinstance(cast(object, name), str) or not _BLOCK.fullmatch(name):
        raise InvalidWatcher(
            f"{name!r} does not name a block of Prefect", fix='Write block("secret/orders-queue")', rule=RULE
        )
    return PrefectBlock(name)


def check_address(url: object, is_known: Callable[[str], bool], *, known: str) -> Address:
    """Return the address that a trigger was given.

    Parameters:
        is_known: returns whether the trigger knows a scheme.
        known: the schemes in words, with the extra that each needs.

    Raises:
        InvalidWatcher: it has a password, a scheme that the trigger does not know, or no scheme.
    """
    if isinstance(url, PrefectBlock):
        return url
    if not isinstance(url, str) or not url.strip():
        raise InvalidWatcher(
            f"the address must be a text, not {url!r}",
            fix='Write a URL, "${VARIABLE}" or block("secret/name")',
            rule=RULE,
        )
    refuse_password(url)
    if _VARIABLE.fullmatch(url):
        return url
    check_scheme(url, is_known, known=known)
    return url


def check_scheme(url: str, is_known: Callable[[str], bool], *, known: str) -> str:
    """Return the scheme of a URL, in lower case.

    Raises:
        InvalidWatcher: it is not known, or there is none.
    """
    found = _SCHEME.match(url)
    scheme = found[1].lower() if found else ""
    if not is_known(scheme):
        said = f"the scheme {scheme!r} is not known" if scheme else f"{without_user(url)!r} has no scheme"
        raise InvalidWatcher(said, fix=f"Known are {known}", rule=RULE)
    return scheme


def refuse_password(url: str) -> None:
    """Refuse a URL with a password before its server or in its query; a variable may stand in its place. Contract 10.1.

    Raises:
        InvalidWatcher
    """
    password = _user_of(url).partition(":")[2]
    found = ["a password"] if password and not _VARIABLE.fullmatch(password) else []
    found += [
        name
        for name, value in parse_qsl(url.partition("?")[2])
        if looks_secret(name) and not _VARIABLE.fullmatch(value)
    ]
    if found:
        plain = without_user(url).partition("?")[0]
        raise InvalidWatcher(
            f"the address {plain} has {found[0]}, which everybody could read who sees the deployment",
            fix='Write the secret as a variable, "amqp://me:${PASSWORD}@mq.internal", or all of the address as '
            '"${ORDERS_QUEUE_URL}" or block("secret/orders-queue")',
            rule=RULE,
        )


def is_variable(text: str) -> bool:
    """Return True if a text is nothing but an environment variable: "${PASSWORD}"."""
    return _VARIABLE.fullmatch(text) is not None


def variables_of(url: str) -> list[str]:
    """Return the names of the environment variables in a URL."""
    return _VARIABLE.findall(url)


def with_variables(url: str, environment: Mapping[str, str]) -> str:
    """Return a URL with the values of its environment variables.

    Raises:
        InvalidWatcher: a variable is not set.
    """
    for name in variables_of(url):
        if not environment.get(name):
            raise InvalidWatcher(
                f"the environment variable {name} is not set",
                where=without_user(url),
                fix="Set it for the process that watches, or write a block of Prefect: block(...)",
                rule=RULE,
            )
    return _VARIABLE.sub(lambda found: environment[found[1]], url)


def without_user(url: str) -> str:
    """Return a URL without user and password, for ids and for people."""
    user = _user_of(url)
    return url.replace(f"{user}@", "", 1) if user else url


def source_of_url(url: str, default_ports: Mapping[str, int]) -> str:
    """Return the address of a server as it is written in ids: lower case, with its port, without user and options."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    port = parts.port or default_ports.get(scheme)
    place = f"{(parts.hostname or '').lower()}:{port}" if port else (parts.hostname or "").lower()
    return urlunsplit((scheme, place, parts.path.rstrip("/"), "", ""))


def address_to_json(address: Address) -> object:
    """Return an address as JSON: a text, or an object that names the block."""
    return {"block": address.name} if isinstance(address, PrefectBlock) else address


def address_from_json(data: object) -> Address:
    """Return the address that `address_to_json` wrote."""
    if isinstance(data, Mapping):
        return PrefectBlock(str(cast("Mapping[str, object]", data)["block"]))
    return str(data)


def _user_of(url: str) -> str:
    # Also of an address behind a prefix, as in jdbc:postgresql://user:password@host/shop.
    authority = re.search(r"://([^/?#]*)@", url)
    return authority[1] if authority else ""


# What a trigger names, exactly one of them.
PLACES = ("queue", "stream", "topic")


@dataclass(frozen=True)
class Broker:
    """A kind of broker.

    Attributes:
        schemes: those of its addresses.
        places: what its messages lie in, of `PLACES`.
        extra: the extra of assetflow that installs its client.
    """

    title: str
    schemes: tuple[str, ...]
    places: tuple[str, ...]
    extra: str


RABBITMQ = Broker("RabbitMQ", ("amqp", "amqps"), ("queue",), "rabbitmq")
REDIS = Broker("Redis", ("redis", "rediss"), ("queue", "stream"), "redis")
SQS = Broker("SQS", ("sqs",), ("queue",), "sqs")
KAFKA = Broker("Kafka", ("kafka",), ("topic",), "kafka")
BROKERS: Mapping[str, Broker] = {
    scheme: broker for broker in (RABBITMQ, REDIS, SQS, KAFKA) for scheme in broker.schemes
}
_OURS = ", ".join(f"{scheme}:// (assetflow[{broker.extra}])" for scheme, broker in BROKERS.items())
KNOWN = f"{_OURS}, and those of packages with the entry point `assetflow.watchers`"

# Properties of librdkafka that say how to reach a cluster. Others decide what is read, load code, or are our own.
_KAFKA_OPTIONS = re.compile(
    r"security\.protocol|sasl\.(mechanisms?|username|password|kerberos\.service\.name|kerberos\.principal)|"
    r"sasl\.oauthbearer\.(method|client\.id|client\.secret|scope|extensions|token\.endpoint\.url)|"
    r"ssl\.(ca|certificate|key)\.location|ssl\.key\.password|ssl\.endpoint\.identification\.algorithm|"
    r"client\.(id|rack)|isolation\.level|broker\.address\.family|socket\.timeout\.ms"
)
_REGION = re.compile(r"[a-z0-9-]*")
_ACCOUNT = re.compile(r"/?|/[0-9]{12}/?")


def check_broker_address(url: str) -> None:
    """Refuse an address that the client of its broker could not use.

    Raises:
        InvalidWatcher
    """
    scheme = url.partition(":")[0].lower()
    if scheme in KAFKA.schemes:
        kafka_options(url)
    if scheme in SQS.schemes and not variables_of(url):
        sqs_region(url)


def kafka_options(url: str) -> dict[str, str]:
    """Return the properties of librdkafka that an address stands for: the servers, and what its query says.

    Raises:
        InvalidWatcher: it has a user before its servers, or an option that does not say how to reach the cluster.
    """
    parts = urlsplit(url)
    if "@" in parts.netloc or not parts.netloc:
        raise InvalidWatcher(
            f"{without_user(url).partition('?')[0]} is not an address of Kafka",
            fix='Write "kafka://one:9092,two:9092?security.protocol=SASL_SSL&sasl.mechanism=PLAIN&sasl.username=me'
            '&sasl.password=${PASSWORD}"',
            rule=RULE,
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if not _KAFKA_OPTIONS.fullmatch(name):
            raise InvalidWatcher(
                f"{name!r} in an address of Kafka does not say how to reach it",
                fix="Options are those of librdkafka for security, such as sasl.username and ssl.ca.location",
                rule=RULE,
            )
    return {"bootstrap.servers": parts.netloc, **options}


def sqs_region(url: str) -> tuple[str, str]:
    """Return the region and the account of an address of SQS; each is empty if the address does not say it.

    Raises:
        InvalidWatcher: it has other parts.
    """
    parts = urlsplit(url)
    if not _REGION.fullmatch(parts.netloc) or not _ACCOUNT.fullmatch(parts.path) or parts.query:
        raise InvalidWatcher(
            f"{without_user(url).partition('?')[0]} is not an address of SQS",
            fix='Write "sqs://eu-west-1", or "sqs://eu-west-1/123456789012" for a queue of another account',
            rule=RULE,
        )
    return parts.netloc, parts.path.strip("/")
