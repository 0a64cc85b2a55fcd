"""A Python client generated from docs/openapi.json against a running daemon: python3 client.py http://HOST:PORT

Every answer is read by the generated classes, which refuse what the document does not describe.
"""

import sys
import time

from visperf_client import Client
from visperf_client.api.daemon import daemon_info, get_daemon_info
from visperf_client.api.domain import domain_hosts, domain_summary, get_domain_calls, get_domain_events
from visperf_client.api.sensor import (
    get_sensor_channels,
    get_sensor_files,
    get_sensor_metrics,
    get_sensor_processes,
    get_sensor_recordings,
    get_sensor_subscriptions,
    sensor_alter,
    sensor_calls,
    sensor_events,
    sensor_subscribe,
    sensor_take,
    sensor_unsubscribe,
)
from visperf_client.api.system import get_system_list_methods, system_multicall
from visperf_client.models import (
    DaemonInfoBody,
    DomainHostsBody,
    DomainSummaryBody,
    Failed,
    GetDomainCallsOutcomeItem,
    GetDomainEventsKindItem,
    SensorAlterBody,
    SensorCallsBody,
    SensorEventsBody,
    SensorSubscribeBody,
    SensorSubscribeBodySelection,
    SensorTakeBody,
    SensorUnsubscribeBody,
    SystemMulticallBody,
)

client = Client(base_url=sys.argv[1])
steps = 0


def check(what, holds):
    global steps
    steps += 1
    print("ok    " if holds else "FAILED", what)
    if not holds:
        sys.exit(1)


def eventually(what, look):
    until = time.monotonic() + 60
    while not look():
        if time.monotonic() > until:
            check(what, False)
        time.sleep(0.2)
    check(what, True)


info = get_daemon_info.sync(client=client)
check("a daemon says what it is", info.name == "visperf" and info.healthy in (True, False))
check("GET and POST give the same", daemon_info.sync(client=client, body=DaemonInfoBody()).pid == info.pid)
check("statistics are structures by name", "queries" in info.statistics.additional_properties)
names = get_system_list_methods.sync(client=client)
check("every method is there", "sensor.take" in names and "domain.hosts" in names)

eventually(
    "events have been read",
    lambda: len(sensor_events.sync(client=client, body=SensorEventsBody(limit=10)).events) == 10,
)
page = sensor_events.sync(client=client, body=SensorEventsBody(limit=3))
behind = sensor_events.sync(client=client, body=SensorEventsBody(cursor=page.cursor, limit=3))
check("a cursor goes on where a page ended", {e.id for e in page.events}.isdisjoint(e.id for e in behind.events))
event = page.events[0]
check("an event has its source and times", event.source.offset >= 0 and event.time > 1e9 and event.seen > 1e9)
ends = get_domain_events.sync(client=client, kind=[GetDomainEventsKindItem.JOB_END], limit=5)
check("events of one kind", not isinstance(ends, Failed) and all(e.kind == "job_end" for e in ends.events))
calls = sensor_calls.sync(client=client, body=SensorCallsBody(limit=2))
check("calls come in pages", calls.total > 2 and len(calls.calls) == 2 and isinstance(calls.next_, str))
failed = get_domain_calls.sync(client=client, outcome=[GetDomainCallsOutcomeItem.FAILED])
check("calls of one outcome", failed.total > 0 and all(c.outcome == "failed" for c in failed.calls))

eventually("hosts report", lambda: len(domain_hosts.sync(client=client, body=DomainHostsBody()).hosts) > 0)
summary = domain_summary.sync(client=client, body=DomainSummaryBody())
check("the domain has a summary", summary.events > 0 and summary.calls.ended >= 0)
eventually(
    "metrics are sampled",
    lambda: any(m.name == "node_load1" for m in get_sensor_metrics.sync(client=client).metrics),
)
eventually("processes are sampled", lambda: get_sensor_processes.sync(client=client, limit=5).total > 0)
check("files are listed", len(get_sensor_files.sync(client=client).files) > 0)
check("recordings are listed", isinstance(get_sensor_recordings.sync(client=client).recordings, list))
kinds = get_sensor_channels.sync(client=client).kinds
check("channels are described", {k.kind for k in kinds} == {"process", "host", "event", "call"})

selection = SensorSubscribeBodySelection(name="*")
wanted = SensorSubscribeBody(rate_hz=20.0, selection=selection, filter_="top 3 by cpu")
made = sensor_subscribe.sync(client=client, body=wanted)
check("a subscription is made", made.rate_hz == 20.0 and isinstance(made.subscription, str))
taken = sensor_take.sync(client=client, body=SensorTakeBody(subscription=made.subscription, wait=10.0))
sample = next(entry for entry in taken.entries if entry.what == "sample")
check("samples come", 0 < len(sample.processes) <= 3 and sample.processes[0].start_ns >= 0)
altered = sensor_alter.sync(client=client, body=SensorAlterBody(subscription=made.subscription, rate_hz=5.0))
check("it is altered", altered.rate_hz == 5.0 and altered.revision == made.revision + 1)
listed = get_sensor_subscriptions.sync(client=client).subscriptions
check("it is listed", any(one.rate_hz == 5.0 for one in listed))
ended = sensor_unsubscribe.sync(client=client, body=SensorUnsubscribeBody(subscription=made.subscription))
check("it ends", ended.subscription == made.subscription)

gone = sensor_take.sync(client=client, body=SensorTakeBody(subscription=made.subscription))
check("a fault has its code", isinstance(gone, Failed) and gone.error.code == -32010)
odd = sensor_events.sync(client=client, body=SensorEventsBody(limit=0))
check("a mistake says what was expected", isinstance(odd, Failed) and "1 to 10000" in odd.error.message)
many = SystemMulticallBody(calls=[{"methodName": "daemon.info"}, {"methodName": "no.such"}])
answers = system_multicall.sync(client=client, body=many)
check("several calls in one", len(answers) == 2 and answers[1]["faultCode"] == -32601)
print(f"{steps} steps, all ok")
