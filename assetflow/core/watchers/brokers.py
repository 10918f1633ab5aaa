"""The brokers whose queues can be watched, and how their addresses are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from assetflow.core.values.addresses import RULE, variables_of, without_user
from assetflow.errors import InvalidWatcher

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
