#!/usr/bin/env python3
"""gmond's own default configuration, made to speak to loopback only.

gmond-config.py DEFAULT MODULES PORT own|second

`own` leaves its intervals as they are; `second` collects and sends what it collects repeatedly each second.
"""

import re
import sys


def main():
    text, modules, port, intervals = open(sys.argv[1]).read(), sys.argv[2], sys.argv[3], sys.argv[4]
    text = re.sub(r"(?m:^)udp_send_channel \{.*?\n\}", f"udp_send_channel {{\n  host = 127.0.0.1\n  port = {port}\n  ttl = 1\n}}", text, flags=re.S)
    text = re.sub(r"(?m:^)udp_recv_channel \{.*?\n\}", f"udp_recv_channel {{\n  bind = 127.0.0.1\n  port = {port}\n}}", text, flags=re.S)
    text = re.sub(r"(?m:^)tcp_accept_channel \{.*?\n\}", f"tcp_accept_channel {{\n  bind = 127.0.0.1\n  port = {port}\n}}", text, flags=re.S)
    text = re.sub(r"\bsetuid = \w+", "setuid = no", text)
    text = re.sub(r"\bdaemonize = \w+", "daemonize = no", text)
    text = re.sub(r"\bdeaf = \w+", "deaf = no", text)
    text = re.sub(r"(\bgexec = \w+)", rf'\1\n  module_dir = "{modules}"', text) if "module_dir" not in text else text
    text = re.sub(r"^\s*include \(.*\)$", "", text, flags=re.M)
    if intervals == "second":
        text = re.sub(r"\bcollect_every = \d+", "collect_every = 1", text)
        text = re.sub(r"\btime_threshold = \d+", "time_threshold = 1", text)
    sys.stdout.write(text)


main()
