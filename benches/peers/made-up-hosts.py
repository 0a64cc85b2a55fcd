#!/usr/bin/env python3
"""Five hundred made-up hosts as other monitors are fed: expositions for Prometheus, a gmond's XML for gmetad.

made-up-hosts.py HTTP_PORT XML_PORT HOSTS COUNTS

Each host has the metrics of sensor/benches/made_up: a third stands still, a third grows, a third is noisy.
GET /metrics/N is host N; a client of XML_PORT receives all hosts. How often both were asked is
written to the file COUNTS each second.
"""

import asyncio
import sys
import time

METRICS = 200
BEGAN = time.time()


def values(nth):
    second = int(time.time() - BEGAN)
    for at in range(METRICS):
        if at % 3 == 0:
            yield at * 1000
        elif at % 3 == 1:
            yield second * at
        else:
            yield second * 100_000 + (second * 7919 + at * 104_729 + nth * 1_299_709) % 65_536


def exposition(nth):
    lines = []
    for at, value in enumerate(values(nth)):
        name = f"node_metric_{at}_total"
        lines.append(f'# HELP {name} A made-up metric.\n# TYPE {name} counter\n{name}{{device="d0"}} {value}\n')
    return "".join(lines).encode()


def cluster(hosts):
    now = int(time.time())
    yield f'<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>\n<GANGLIA_XML VERSION="3.7.2" SOURCE="gmond">\n<CLUSTER NAME="bench" LOCALTIME="{now}" OWNER="unspecified" LATLONG="unspecified" URL="unspecified">\n'
    for nth in range(hosts):
        rows = [f'<HOST NAME="m{nth:04}" IP="10.0.{nth // 250}.{nth % 250 + 1}" TAGS="" REPORTED="{now}" TN="0" TMAX="20" DMAX="0" LOCATION="unspecified" GMOND_STARTED="{int(BEGAN)}">\n']
        rows += [
            f'<METRIC NAME="node_metric_{at}_total" VAL="{value}" TYPE="double" UNITS="bytes" TN="0" TMAX="60" DMAX="0" SLOPE="positive">\n<EXTRA_DATA>\n<EXTRA_ELEMENT NAME="GROUP" VAL="made-up"/>\n</EXTRA_DATA>\n</METRIC>\n'
            for at, value in enumerate(values(nth))
        ]
        yield "".join(rows) + "</HOST>\n"
    yield "</CLUSTER>\n</GANGLIA_XML>\n"


async def main():
    http_port, xml_port, hosts, counts = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    asked = {"scrapes": 0, "polls": 0}

    async def scraped(reader, writer):
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                body = exposition(int(request.split(b" ", 2)[1].rsplit(b"/", 1)[1]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
                asked["scrapes"] += 1
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def polled(_, writer):
        try:
            for part in cluster(hosts):
                writer.write(part.encode())
                await writer.drain()
            asked["polls"] += 1
        except ConnectionError:
            pass
        writer.close()

    await asyncio.start_server(scraped, "127.0.0.1", http_port)
    await asyncio.start_server(polled, "127.0.0.1", xml_port)
    while True:
        with open(counts, "w") as file:
            file.write(f"{asked['scrapes']} {asked['polls']}\n")
        await asyncio.sleep(1)


asyncio.run(main())
