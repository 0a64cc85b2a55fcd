"""What Python's xmlrpc.client sees of a daemon: one line of JSON.

Arguments: the address of a sensor, and that of a server of large numbers.
"""

import json
import sys
import xmlrpc.client

sensor = xmlrpc.client.ServerProxy(sys.argv[1] + "/RPC2", allow_none=True)
numbers = xmlrpc.client.ServerProxy(sys.argv[2] + "/RPC2", allow_none=True)


def fault(call):
    try:
        call()
    except xmlrpc.client.Fault as error:
        return error.faultCode
    return None


def multicall():
    # MultiCall raises the fault of a call when its answer is reached.
    calls = xmlrpc.client.MultiCall(sensor)
    calls.daemon.info()
    calls.no.such()
    answers = calls()
    return [answers[0]["name"], fault(lambda: answers[1])]


answer = sensor.sensor.events({"limit": 100})
after = sensor.sensor.events({"cursor": answer["cursor"]})
large = numbers.trial.numbers()
print(
    json.dumps(
        {
            "events": [[e["kind"], e["user"], e["job"], "%.6f" % e["time"]] for e in answer["events"]],
            "missed": answer["missed"],
            "after": len(after["events"]),
            "numbers": {name: str(value) for name, value in large.items()},
            "unknown": fault(lambda: sensor.no.such()),
            "bad": fault(lambda: sensor.sensor.events({"limit": "many"})),
            "multicall": multicall(),
            "listed": "sensor.events" in sensor.system.listMethods(),
            "help": "limit" in sensor.system.methodHelp("sensor.events"),
            "signature": sensor.system.methodSignature("sensor.events")[0][0],
        }
    )
)
