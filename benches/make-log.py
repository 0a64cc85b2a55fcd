#!/usr/bin/env python3
"""Write a long slurmctld log out of a recorded one, the same bytes each time.

make-log.py RECORDED LINES OUTPUT

Each repetition of the recorded lines has job numbers (also those of array tasks) beyond those of the one
before it, and times later by the span of the record, so that the log reads like one controller's long life.
"""

import datetime
import re
import sys

JOB = re.compile(r"(?P<mark>JobI[dD]=)(?P<job>\d+)(?P<task>_\d+)?(?:\((?P<raw>\d+)\))?")
STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?\]")


def pieces(line):
    """The line as fixed texts and job numbers in turn: what stands between is shifted."""
    parts, at = [], 0
    for found in JOB.finditer(line):
        for group in ("job", "raw"):
            if found.group(group) is not None:
                parts += [line[at : found.start(group)], int(found.group(group))]
                at = found.end(group)
    return parts + [line[at:]]


def stamp(line):
    found = STAMP.match(line)
    if found is None:
        raise SystemExit(f"a recorded line without a time: {line!r}")
    seconds = datetime.datetime.fromisoformat(found.group(1) + "+00:00").timestamp()
    return int(seconds), (found.group(2) or "") + line[found.end() - 1 :]


def main():
    recorded, wanted, output = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(recorded, encoding="utf-8") as source:
        lines = [stamp(line.rstrip("\n")) for line in source]
    lines = [(seconds, pieces(rest)) for seconds, rest in lines]
    numbers = 1 + max(part for _, parts in lines for part in parts if isinstance(part, int))
    span = 60 * (1 + (lines[-1][0] - lines[0][0]) // 60)
    written, repeat, shown = 0, 0, {}
    with open(output, "w", encoding="utf-8", buffering=1 << 20) as out:
        while written < wanted:
            shift, later = repeat * numbers, repeat * span
            shown.clear()
            for seconds, parts in lines[: wanted - written]:
                when = shown.get(seconds)
                if when is None:
                    moment = datetime.datetime.fromtimestamp(seconds + later, datetime.timezone.utc)
                    when = shown[seconds] = "[" + moment.strftime("%Y-%m-%dT%H:%M:%S")
                body = "".join(part if isinstance(part, str) else str(part + shift) for part in parts)
                out.write(when + body + "\n")
            written += min(len(lines), wanted - written)
            repeat += 1
    print(f"{written} lines, {repeat} repetitions of {len(lines)} recorded ones")


main()
