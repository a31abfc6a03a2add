"""An SMTP server for tests: prints its port, and then each message that it accepts, as lines of JSON.

Takes one argument, a JSON object: `port` (0 for any), `tls` ("none", "starttls", "implicit" or "hidden": STARTTLS is not
offered), `certificate` and `key` (files), `user` and `password`, and `delay_seconds` before a message is accepted.
Recipients decide the rest: `rejected@...` never exists, `busy@...` is refused for now, twice, `full...@...` is refused
for now each time, and `slow...@...` gets no response for a minute.
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

options = json.loads(sys.argv[1])
busy_left = {"busy": 2}


def say(document):
    print(json.dumps(document), flush=True)


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        name = address.split("@")[0]
        if name == "rejected":
            say({"refused": address})
            return f"550 5.1.1 <{address}>: no such mailbox"
        if name == "busy" and busy_left["busy"] > 0:
            busy_left["busy"] -= 1
            say({"refused": address})
            return f"450 4.2.0 <{address}>: try again later"
        if name.startswith("full"):
            return f"450 4.2.0 <{address}>: try again later"
        if name.startswith("slow"):
            await asyncio.sleep(60)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        await asyncio.sleep(options.get("delay_seconds", 0))
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = {part.get_content_type(): part.get_content() for part in message.walk() if not part.is_multipart()}
        say(
            {
                "sender": envelope.mail_from,
                "recipients": envelope.rcpt_tos,
                "headers": {name.lower(): str(value) for name, value in message.items()},
                "type": message.get_content_type(),
                "text": parts.get("text/plain"),
                "html": parts.get("text/html"),
                "encrypted": session.ssl is not None or options["tls"] == "implicit",
                "user": session.auth_data.decode() if session.auth_data else None,
                "hello": session.host_name,
            }
        )
        return "250 accepted"


def authenticate(server, session, envelope, mechanism, data):
    right = (data.login.decode(), data.password.decode()) == (options.get("user"), options.get("password"))
    return AuthResult(success=right, handled=False, auth_data=data.login)


async def main():
    context = None
    if options["tls"] in ("starttls", "implicit"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options["certificate"], options["key"])
    starttls = context if options["tls"] == "starttls" else None
    login = "user" in options

    def protocol():
        return SMTP(
            Handler(),
            hostname="mail.test",
            tls_context=starttls,
            require_starttls=starttls is not None,
            authenticator=authenticate if login else None,
            auth_required=login,
            # With implicit TLS the server does not see the encryption.
            auth_require_tls=starttls is not None,
        )

    implicit = context if options["tls"] == "implicit" else None
    server = await asyncio.get_running_loop().create_server(
        protocol, "127.0.0.1", options.get("port", 0), ssl=implicit
    )
    say({"port": server.sockets[0].getsockname()[1]})
    await server.serve_forever()


asyncio.run(main())
