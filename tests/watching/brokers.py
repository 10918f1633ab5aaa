"""Brokers and stores that tests start: a cluster of Kafka inside librdkafka, and moto's server of SQS and S3."""

from typing import Any, cast

import boto3
from confluent_kafka import Producer
from moto.server import ThreadedMotoServer

SQS = "sqs://us-east-1"
SECONDS_HIDDEN = 5


class KafkaCluster:
    """The mock cluster of librdkafka, which lives as long as its producer."""

    def __init__(self) -> None:
        self.producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 3, "log_level": 0})
        brokers = self.producer.list_topics(timeout=10).brokers.values()
        self.url = "kafka://" + ",".join(f"{each.host}:{each.port}" for each in brokers)

    def send(self, name: str, *bodies: bytes) -> None:
        """Send messages to a topic, and return when the cluster has them."""
        confirmed: list[bool] = []
        for body in bodies:
            # Only one partition keeps an order.
            self.producer.produce(name, body, partition=0, callback=lambda error, _: confirmed.append(error is None))
        assert self.producer.flush(30) == 0
        assert confirmed == [True] * len(bodies)


class AwsServer:
    """moto's server of one service of AWS.

    Attributes:
        environment: what points clients of AWS at it.
    """

    def __init__(self, service: str) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.environment = {
            f"AWS_ENDPOINT_URL_{service.upper()}": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }
        self.client = cast(
            Any,
            boto3.client(
                cast(Any, service),
                region_name="us-east-1",
                endpoint_url=f"http://{host}:{port}",
                aws_access_key_id="test",
                aws_secret_access_key="test",
            ),
        )

    def stop(self) -> None:
        self._server.stop()


class SqsServer(AwsServer):
    """moto's server of SQS."""

    def __init__(self) -> None:
        super().__init__("sqs")

    def create(self, name: str) -> None:
        self.client.create_queue(QueueName=name, Attributes={"VisibilityTimeout": str(SECONDS_HIDDEN)})

    def delete(self, name: str) -> None:
        self.client.delete_queue(QueueUrl=self.url(name))

    def url(self, name: str) -> str:
        return self.client.get_queue_url(QueueName=name)["QueueUrl"]

    def send(self, name: str, *bodies: bytes) -> None:
        """Send messages to a queue, and return when it has them."""
        for body in bodies:
            self.client.send_message(QueueUrl=self.url(name), MessageBody=body.decode())


class S3Server(AwsServer):
    """moto's server of S3."""

    def __init__(self) -> None:
        super().__init__("s3")

    def put(self, bucket: str, **files: str) -> None:
        """Write files into a bucket."""
        for key, text in files.items():
            self.client.put_object(Bucket=bucket, Key=key, Body=text.encode())

    def remove(self, bucket: str, *keys: str) -> None:
        for key in keys:
            self.client.delete_object(Bucket=bucket, Key=key)
