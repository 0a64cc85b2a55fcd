"""Follows daemon.info by urllib alone: the kinds of the first events as a line of JSON, as docs/query-interface.md has it."""

import json
import sys
import urllib.request

url = f"{sys.argv[1]}/api/v1/daemon.info?follow=0.2"
seen = []
with urllib.request.urlopen(url, timeout=30) as stream:
    for line in stream:
        if line.startswith(b"data: "):
            told = json.loads(line[6:])
            seen.append([told["skipped"], "answer" in told, told.get("answer", {}).get("name")])
        if len(seen) == 3:
            break
print(json.dumps(seen))
