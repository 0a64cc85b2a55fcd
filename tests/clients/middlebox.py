"""What stands between a site and the outside, and looks into what passes.

Usage: middlebox.py ADDRESS PORT KIND FOLDER, of kind
  tls      passes connections on that begin as TLS does, and closes others;
  web      ends TLS by a certificate of its own, passes whole requests of HTTP on, and refuses every upgrade.
Says "ready" when it listens, and a line for each connection and request. Where to is told by TARGET=HOST:PORT in the
environment: the rule of the firewall that leads here leaves no trace of it.
"""

import http.client
import http.server
import os
import socket
import ssl
import subprocess
import sys
import threading

from pump import pump

address, port, kind, folder = sys.argv[1:]
host, _, number = os.environ["TARGET"].rpartition(":")
target = (host, int(number))


def pass_tls(client):
    first = client.recv(1, socket.MSG_PEEK)
    if first != b"\x16":
        print("refused what is no TLS", flush=True)
        client.close()
        return
    print("passed TLS", flush=True)
    try:
        other = socket.create_connection(target, 5)
    except OSError:
        client.close()
        return
    threading.Thread(target=pump, args=(client, other), daemon=True).start()
    pump(other, client)


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    other = None

    def pass_on(self):
        if "upgrade" in self.headers:
            print("refused an upgrade", flush=True)
            self.answer(403, b"no upgrades here\n")
            return
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        kept = {k: v for k, v in self.headers.items() if k.lower() not in ("connection", "keep-alive", "te")}
        kept["Via"] = "1.1 middlebox"
        for attempt in range(2):
            if self.other is None:
                unproved = ssl.create_default_context()
                unproved.check_hostname = False
                unproved.verify_mode = ssl.CERT_NONE
                self.other = http.client.HTTPSConnection(*target, timeout=60, context=unproved)
            try:
                self.other.request(self.command, self.path, body or None, kept)
                found = self.other.getresponse()
                told = found.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self.other = None
                if attempt:
                    print("failed", error, flush=True)
                    self.answer(502, b"")
                    return
        print("passed", self.command, self.path[:8], flush=True)
        self.answer(found.status, told)

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = pass_on

    def log_message(self, *_):
        pass


def serve_web():
    certificate, key = os.path.join(folder, "middlebox.pem"), os.path.join(folder, "middlebox.key")
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=middlebox"
    subprocess.run([*words.split(), "-out", certificate, "-keyout", key], check=True, capture_output=True)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate, key)

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request, client_address):
            # In the connection's own thread: who says nothing keeps nobody waiting.
            request.settimeout(60)
            try:
                wrapped = own.wrap_socket(request, server_side=True)
            except OSError:
                print("refused what is no TLS", flush=True)
                return
            wrapped.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Web(wrapped, client_address, self)

        def handle_error(self, request, client_address):
            pass

    server = Server((address, int(port)), Web)
    print("ready", flush=True)
    server.serve_forever()


if kind == "web":
    serve_web()
else:
    with socket.create_server((address, int(port))) as listener:
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=pass_tls, args=(connection,), daemon=True).start()
