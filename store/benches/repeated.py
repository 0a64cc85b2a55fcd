"""The recording of a host's metrics, repeated, in forms that other programs read.

    repeated.py even RECORDING                       the recording, with one second between its sweeps
    repeated.py openmetrics RECORDING HOURS FOLDER   a file of OpenMetrics for every two hours
    repeated.py victoria RECORDING HOURS             lines for /api/v1/import of VictoriaMetrics
    repeated.py rrd RECORDING HOURS FOLDER           commands for `rrdtool -`, of ten metrics
    repeated.py span RECORDING HOURS                 first and last time, in seconds

Repeated as series.rs does it. Times are earlier by a multiple of two hours, so that none is in the future.
"""

import json
import math
import sys

BLOCK_SECS = 7200
RRD_METRICS = 10
RRD_UPDATES = 500


class Recording:
    def __init__(self, path, hours):
        self.metrics, self.times, self.rows = [], [], []
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                try:
                    line = json.loads(line)
                except ValueError:  # The last line may be cut off.
                    continue
                if "define" in line:
                    self.metrics.append(line["metric"])
                    continue
                self.times.append(line["t"])
                self.rows.append(dict(line["v"]))
        self.span = self.times[-1] - self.times[0] + 1
        self.repetitions = max(1, math.ceil(hours * 3600 / self.span))
        self.earlier = BLOCK_SECS * math.ceil(self.span * self.repetitions / BLOCK_SECS)

    def value(self, number, row, repetition):
        value = self.rows[row].get(number)
        if self.metrics[number][3] != "counter" or repetition == 0 or value is None:
            return value
        first, last = self.rows[0].get(number), self.rows[-1].get(number)
        if first is None or last is None:
            return value
        if isinstance(value, int):
            return value + repetition * max(0, last - first)
        return math.floor((value + repetition * (last - first)) * 100 + 0.5) / 100

    def time(self, row, repetition):
        return self.times[row] + self.span * repetition - self.earlier

    def sweeps(self):
        for repetition in range(self.repetitions):
            for row in range(len(self.rows)):
                yield repetition, row, self.time(row, repetition)


def escaped(text):
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def openmetrics(recording, folder):
    names = []
    for name, labels, _, _ in recording.metrics:
        inner = ",".join(f'{label}="{escaped(value)}"' for label, value in labels.items())
        names.append(f"{name}{{{inner}}}")
    out, block = None, None
    for repetition, row, time in recording.sweeps():
        if time // BLOCK_SECS != block:
            if out:
                out.write("# EOF\n")
                out.close()
            block = time // BLOCK_SECS
            out = open(f"{folder}/{int(block)}.txt", "w", encoding="utf-8")
        lines = []
        for number, name in enumerate(names):
            value = recording.value(number, row, repetition)
            if value is not None:
                lines.append(f"{name} {value} {time:.3f}\n")
        out.write("".join(lines))
    out.write("# EOF\n")
    out.close()


def victoria(recording):
    for number, (name, labels, _, _) in enumerate(recording.metrics):
        cells = [(recording.value(number, row, repetition), round(time * 1000))
                 for repetition, row, time in recording.sweeps()]
        cells = [cell for cell in cells if cell[0] is not None]
        line = {"metric": {"__name__": name, **labels}, "values": [value for value, _ in cells],
                "timestamps": [time for _, time in cells]}
        print(json.dumps(line, separators=(",", ":")))


def rrd(recording, folder):
    rows = len(recording.rows) * recording.repetitions
    step = max(1, len(recording.metrics) // RRD_METRICS)
    for number in range(0, step * RRD_METRICS, step):
        file = f"{folder}/{number}.rrd"
        start = int(recording.time(0, 0)) - 10
        print(f"create {file} --start {start} --step 1 DS:v:GAUGE:5:U:U RRA:LAST:0.5:1:{rows}")
        updates, before = [], 0
        for repetition, row, time in recording.sweeps():
            value, time = recording.value(number, row, repetition), round(time)
            if time > before and value is not None:
                updates.append(f"{time}:{value}")
                before = time
        for at in range(0, len(updates), RRD_UPDATES):
            print(f"update {file} {' '.join(updates[at:at + RRD_UPDATES])}")


def even(path):
    first, sweeps = None, 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            try:
                parsed = json.loads(line)
            except ValueError:
                continue
            if "t" in parsed:
                first = first or round(parsed["t"])
                parsed["t"] = first + sweeps
                sweeps += 1
            print(json.dumps(parsed, separators=(",", ":")))


def main():
    what, path, *rest = sys.argv[1:]
    if what == "even":
        even(path)
        return
    recording = Recording(path, float(rest[0]))
    if what == "openmetrics":
        openmetrics(recording, rest[1])
    elif what == "victoria":
        victoria(recording)
    elif what == "rrd":
        rrd(recording, rest[1])
    elif what == "span":
        last = recording.time(len(recording.rows) - 1, recording.repetitions - 1)
        values = sum(len(row) for row in recording.rows) * recording.repetitions
        print(f"{recording.time(0, 0):.3f} {last:.3f} {values} {len(recording.rows) * recording.repetitions}")
    else:
        sys.exit(f"no such form: {what}")


main()
