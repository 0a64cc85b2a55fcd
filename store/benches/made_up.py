"""The values that copies.rs makes up for one metric of a domain, in forms that other programs read.

    made_up.py openmetrics HOSTS START FROM UNTIL    OpenMetrics of these seconds
    made_up.py victoria HOSTS START FROM UNTIL       lines for /api/v1/import of VictoriaMetrics

A value each 10 seconds since START, the same on all hosts.
"""

import json
import sys

EVERY_SECS = 10
METRICS = 200
NUMBER = 1


def value(sweep):
    noise = ((sweep * METRICS + NUMBER) * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 40
    return noise % 10_000 / 100


def main():
    what, *numbers = sys.argv[1:]
    hosts, start, first, end = map(int, numbers)
    times = range(first, end, EVERY_SECS)
    values = [value((time - start) // EVERY_SECS) for time in times]
    if what == "openmetrics":
        for host in range(hosts):
            sys.stdout.writelines(f'metric_1{{host="wn{host}"}} {cell} {time}\n' for time, cell in zip(times, values))
        print("# EOF")
    elif what == "victoria":
        cells = json.dumps(values), json.dumps([time * 1000 for time in times])
        for host in range(hosts):
            name = json.dumps({"__name__": "metric_1", "host": f"wn{host}"})
            print(f'{{"metric":{name},"values":{cells[0]},"timestamps":{cells[1]}}}')
    else:
        sys.exit(f"expected openmetrics or victoria, found {what}")


main()
