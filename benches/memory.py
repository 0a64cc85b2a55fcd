"""Clients of one sensor that come and go: subscriptions, connections, streams.

    memory.py ADDRESS churn SUBSCRIPTIONS CONNECTIONS [HOST...]    so many of both, as fast as the sensor answers
    memory.py ADDRESS attack SECONDS                               as many subscriptions with scripts as it accepts

HOSTs are other hosts of its domain: every fourth subscription is to one of them. Prints what was done.
"""

import http.client
import json
import socket
import struct
import sys
import threading
import time
import xmlrpc.client
from collections import deque

CONNECTION_THREADS = 4
# Subscriptions, and connections without a request, that are open at a time.
SUBSCRIPTIONS_OPEN = 48
CONNECTIONS_OPEN = 64
SUBSCRIPTIONS = (
    {"rate": 64, "filter": "cpu > 0.01 top 20 by rss_bytes"},
    {"rate": 30, "script": "state.n = (if state.n == () { 0 } else { state.n }) + 1; #{ n: state.n, rss: records.sum(\"rss_bytes\") }"},
    {"rate": 10, "changes": True},
    {"kind": "host", "rate": 1, "selection": {"metric": "node_*"}},
    {"kind": "event", "rate": 10, "filter": "kind ~ \"^job\""},
    {"rate": 120, "filter": "rss_bytes > 1M", "script": "records.filter(|one| one.threads > 1)"},
    {"rate": 20, "condition": "count > 10 until 5", "filter": "name ~ \"^[a-z]\""},
)
ATTACK = {
    "rate": 120,
    "script": "let x = 0; for i in 0..4500 { x += 1; } #{ x: x }",
    "budget": {"cpu_ms": 500, "queue_bytes": 256 << 10},
}


class Sensor:
    """The address of a sensor, and calls to it on one connection."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.at = (host, int(port))
        self.client = http.client.HTTPConnection(*self.at, timeout=60)

    def call(self, method, params):
        headers = {"Content-Type": "application/json"}
        self.client.request("POST", "/api/v1/" + method, json.dumps(params), headers)
        return json.loads(self.client.getresponse().read())

    def get(self, path):
        self.client.request("GET", path)
        return self.client.getresponse().read()

    def close(self):
        self.client.close()


def fields(name):
    return {"rate": 5, "filter": "cpu > 0.01", "host": name}


def subscriptions(address, count, hosts):
    """Open, take from and end; each eighth is abandoned, and ends when its sensor gives it up."""
    sensor, opened, figures = Sensor(address), deque(), {"subscriptions": 0, "refused": 0}

    def end(nth, one):
        sensor.call("sensor.take", {"subscription": one, "limit": 100})
        if nth % 8:
            sensor.call("sensor.unsubscribe", {"subscription": one})

    nth = 0
    while figures["subscriptions"] < count:
        elsewhere = hosts and nth % 4 == 3
        wanted = fields(hosts[nth % len(hosts)]) if elsewhere else SUBSCRIPTIONS[nth % len(SUBSCRIPTIONS)]
        answer = sensor.call("sensor.subscribe", wanted)
        nth += 1
        if "subscription" in answer:
            figures["subscriptions"] += 1
            opened.append((nth, answer["subscription"]))
        else:
            # Too many: abandoned ones are still there.
            figures["refused"] += 1
            time.sleep(0.2)
        if len(opened) > SUBSCRIPTIONS_OPEN or (opened and "subscription" not in answer):
            end(*opened.popleft())
    for one in opened:
        end(*one)
    sensor.close()
    return figures


def reset(connected):
    """Close without having read what is under way."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connected.close()


def follow(at):
    with socket.create_connection(at, timeout=30) as stream:
        stream.sendall(b"GET /api/v1/sensor.metrics?follow=0.2 HTTP/1.1\r\nhost: localhost\r\n\r\n")
        read = b""
        while b"\ndata:" not in read and (some := stream.recv(1 << 16)):
            read = read[-16:] + some


def unread(at, request):
    stream = socket.create_connection(at, timeout=30)
    stream.sendall(request)
    reset(stream)


def one_connection(nth, sensor, held):
    """The connection of this number: of ten kinds."""
    kind = nth % 10
    if kind == 0:
        for path in ("daemon.info", "sensor.metrics?name=node_load1", "domain.hosts"):
            sensor.get("/api/v1/" + path)
    elif kind == 1:
        sensor.get("/api/v1/sensor.processes?limit=1000")
    elif kind == 2:
        xmlrpc.client.ServerProxy("http://%s:%d/RPC2" % sensor.at, allow_none=True).sensor.processes({"limit": 200})
    elif kind == 3:
        sensor.get("/api/v1/sensor.events?limit=1000")
    elif kind == 4:
        sensor.call("sensor.metrics", {"history": True, "limit": 1000})
    elif kind == 5:
        follow(sensor.at)
    elif kind == 6:
        unread(sensor.at, b"GET /api/v1/sensor.metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
    elif kind == 7:
        unread(sensor.at, b"POST /RPC2 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000\r\n\r\n" + b"x" * 4000)
    elif kind == 8:
        held.append(socket.create_connection(sensor.at, timeout=30))
        if len(held) > CONNECTIONS_OPEN:
            held.popleft().close()
    else:
        sensor.get("/api/v1/domain.summary")
    sensor.close()


def connections(address, count):
    figures = {"connections": 0, "failed": 0}

    def some(part):
        held = deque()
        for nth in range(part, count, CONNECTION_THREADS):
            try:
                one_connection(nth, Sensor(address), held)
            except (OSError, http.client.HTTPException, xmlrpc.client.Error):
                figures["failed"] += 1
            figures["connections"] += 1
        for stream in held:
            stream.close()

    threads = [threading.Thread(target=some, args=(part,)) for part in range(CONNECTION_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return figures


def churn(address, subscription_count, connection_count, hosts):
    figures = {}
    subscribing = threading.Thread(target=lambda: figures.update(subscriptions(address, subscription_count, hosts)))
    subscribing.start()
    figures.update(connections(address, connection_count))
    subscribing.join()
    print(", ".join(f"{count} {what}" for what, count in figures.items()), flush=True)


def attack(address, seconds):
    """Nothing is taken until the end: queues fill."""
    sensor, ids = Sensor(address), []
    for _ in range(256):
        answer = sensor.call("sensor.subscribe", ATTACK)
        if "subscription" in answer:
            ids.append(answer["subscription"])
    time.sleep(seconds)
    for one in ids:
        sensor.call("sensor.unsubscribe", {"subscription": one})
    print(f"{len(ids)} of 256 subscriptions accepted")


if __name__ == "__main__":
    target, what, *rest = sys.argv[1:]
    if what == "churn":
        churn(target, int(rest[0]), int(rest[1]), rest[2:])
    else:
        attack(target, float(rest[0]))
