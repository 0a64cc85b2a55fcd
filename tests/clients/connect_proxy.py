"""A site's HTTP proxy that passes CONNECT on, to those who log in by Basic.

Usage: connect_proxy.py ADDRESS PORT NAME SECRET; says "ready" when it listens, and a line for each connection.
"""

import base64
import socket
import sys
import threading

from pump import pump

address, port, name, secret = sys.argv[1:]
expected = "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()


def serve(client):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = client.recv(1)
        if not data:
            return
        head += data
    lines = head.decode().split("\r\n")
    method, target, _ = lines[0].split(" ")
    fields = dict(line.split(": ", 1) for line in lines[1:] if line)
    if method != "CONNECT":
        client.sendall(b"HTTP/1.1 405 No\r\n\r\n")
    elif fields.get("Proxy-Authorization") != expected:
        client.sendall(b'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="site"\r\n\r\n')
    else:
        host, _, number = target.rpartition(":")
        try:
            other = socket.create_connection((host.strip("[]"), int(number)), 5)
        except OSError:
            client.sendall(b"HTTP/1.1 502 No\r\n\r\n")
            client.close()
            return
        print("connected", target, flush=True)
        client.sendall(b"HTTP/1.1 200 Yes\r\n\r\n")
        threading.Thread(target=pump, args=(client, other), daemon=True).start()
        pump(other, client)
    client.close()


with socket.create_server((address, int(port))) as listener:
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
