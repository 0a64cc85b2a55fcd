"""One user of a sensor's local socket: subscribes as much as it may, or measures what is left for others.

    subscriptions.py SOCKET attack SECONDS       256 subscriptions at 120 Hz, each with a script just below its limit
    subscriptions.py SOCKET measure SECONDS HZ   one subscription, the latency of daemon.info, sweeps that slipped
"""

import http.client
import json
import socket
import sys
import threading
import time

SCRIPT = "let x = 0; for i in 0..4500 { x += 1; } #{ x: x }"


class Local(http.client.HTTPConnection):
    """HTTP over a local socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)

    def call(self, method, params):
        headers = {"Content-Type": "application/json"}
        self.request("POST", "/api/v1/" + method, json.dumps(params), headers)
        return json.loads(self.getresponse().read())


def attack(path, seconds):
    client, ids, refused = Local(path), [], 0
    budget = {"cpu_ms": 500, "queue_bytes": 64 << 10}
    for _ in range(256):
        made = client.call("sensor.subscribe", {"rate": 120, "script": SCRIPT, "budget": budget})
        if "subscription" in made:
            ids.append(made["subscription"])
        else:
            refused += 1
    print(f"attack: {len(ids)} subscriptions made, {refused} refused", flush=True)
    end = time.monotonic() + seconds

    def take(part):
        client = Local(path)
        while time.monotonic() < end:
            for one in part:
                client.call("sensor.take", {"subscription": one, "limit": 1000})

    threads = [threading.Thread(target=take, args=(ids[nth::4],)) for nth in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(path, seconds, rate):
    client = Local(path)
    wanted = {"rate": rate, "filter": "cpu > 0.5 top 5 by rss_bytes"}
    one = client.call("sensor.subscribe", wanted)["subscription"]
    end = time.monotonic() + seconds
    times = []

    def ask():
        client = Local(path)
        while time.monotonic() < end:
            began = time.monotonic()
            client.call("daemon.info", {})
            times.append(time.monotonic() - began)
            time.sleep(0.05)

    def standing():
        all_of_them = client.call("sensor.subscriptions", {})["subscriptions"]
        found = next(each for each in all_of_them if each.get("subscription") == one)
        return time.monotonic(), found["due"] - found["missed"]

    asking = threading.Thread(target=ask)
    asking.start()
    before, (began, had) = client.call("daemon.info", {})["statistics"], standing()
    while time.monotonic() < end:
        client.call("sensor.take", {"subscription": one, "wait": 1, "limit": 1000})
    ended, has = standing()
    asking.join()
    answer = client.call("daemon.info", {})
    after = answer["statistics"]
    times.sort()
    shown = lambda part: f"{times[min(int(len(times) * part), len(times) - 1)] * 1e3:.1f} ms"
    grown = lambda name: after["processes"][name] - before["processes"][name]
    sweeps, slipped = grown("sweeps_total"), grown("slipped_total")
    print(f"samples: {(has - had) / (ended - began):.1f} of {rate:.0f} a second")
    print(f"daemon.info: n {len(times)}, p50 {shown(0.5)}, p99 {shown(0.99)}, max {shown(1)}")
    print(f"sweeps: {sweeps}, slipped {slipped} ({100 * slipped / max(sweeps + slipped, 1):.2f} %)")
    print(f"subscriptions: {after['subscriptions']}")
    print("health:", *answer["health"], sep="\n  ")


if __name__ == "__main__":
    socket_path, what, seconds, *rate = sys.argv[1:]
    if what == "attack":
        attack(socket_path, float(seconds))
    else:
        measure(socket_path, float(seconds), float(rate[0]))
