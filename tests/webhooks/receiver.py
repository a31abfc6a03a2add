"""A webhook receiver for tests that verifies with the official Python library.

Takes one argument, a JSON object: `certificate` and `key` (PEM files), or neither for plain HTTP. Prints its port on
127.0.0.1, and then each request as it arrives, as lines of JSON. Lines of JSON on standard input control it; it prints
`{"applied": true}` when a line has taken effect, and ends at the end of its input:

    {"secrets": ["whsec_..."]}   a request is verified if it is signed with any of these
    {"respond": [500, {"status": 302, "headers": {"Location": "..."}}, "hang"]}

`respond` has the responses to the next requests, in order; "hang" sends none. Without one, a verified request gets 204
and any other 400. `receiver.mjs` is the same with the official JavaScript library.
"""

import collections
import http.server
import json
import ssl
import sys
import threading

from standardwebhooks import Webhook

options = json.loads(sys.argv[1])
lock = threading.Lock()
secrets = []
responses = collections.deque()


def verify(body, headers):
    """What the library makes of a request: which secret it is signed with, and the error if it is none of them."""
    error = "no secret is set"
    for index, secret in enumerate(list(secrets)):
        try:
            Webhook(secret).verify(body, headers)
            return {"verified": True, "secret": index, "error": None}
        except Exception as failure:
            error = str(failure)
    return {"verified": False, "secret": None, "error": error}


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def report(request):
    """Prints a request and takes the next response, so that both are in the same order."""
    with lock:
        print(json.dumps(request), flush=True)
        response = responses.popleft() if responses else (204 if request["verified"] else 400)
    return {"status": response, "headers": {}} if isinstance(response, int) else response


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def receive(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        text = body.decode(errors="replace")
        response = report(
            {
                "method": self.command,
                "path": self.path,
                "id": headers.get("webhook-id"),
                "timestamp": headers.get("webhook-timestamp"),
                "headers": headers,
                **verify(body, headers),
                "body": parsed(text),
                "text": text,
            }
        )
        if response == "hang":
            # Until the client closes the connection.
            self.rfile.read(1)
            self.close_connection = True
            return
        self.send_response(response["status"])
        for name, value in response.get("headers", {}).items():
            self.send_header(name, value)
        if response["status"] != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    # A client that follows a redirect may change the method.
    do_GET = do_HEAD = do_POST = do_PUT = receive

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        # Clients may refuse the certificate or break the connection; anything else is a bug.
        if not isinstance(sys.exc_info()[1], (ssl.SSLError, OSError)):
            super().handle_error(request, client_address)


server = Server(("127.0.0.1", 0), Handler)
if "certificate" in options:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options["certificate"], options["key"])
    # The handshake is left to the connection's own thread.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"port": server.server_address[1]}), flush=True)

for line in sys.stdin:
    control = json.loads(line)
    with lock:
        if "secrets" in control:
            secrets[:] = control["secrets"]
        if "respond" in control:
            responses.clear()
            responses.extend(control["respond"])
        print(json.dumps({"applied": True}), flush=True)
