#!/usr/bin/env python3
"""Runs Schemathesis against the OpenAPI document of a server of its own; `just schemathesis` builds the programs first.

The server listens on a free port, keeps its data in a temporary folder, and is ended by its process id. Its rate limits
are off and its account has no caps, so that a 429 does not hide another response. With anvil (`npm ci` in tests/chain) a
plan is on sale. Arguments that this script does not know are passed to `schemathesis run`.
"""

import argparse
import filecmp
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
REQUIREMENTS = HERE / "requirements.txt"
ANVIL = HERE.parent / "chain/node_modules/.bin/anvil"
SECRET = "correct horse battery staple"
CHAIN_ID = 31337

# In the sample feed.
POOL = "0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640"
TOKEN = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
# Wallets of anvil's.
PAYERS = [
    "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
    "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
    "0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65",
]

SERVER = """
listen = "127.0.0.1:0"

[log]
filter = "warn"

[limits]
signup_per_ip = "off"
signup_per_network = "off"
signup_per_email = "off"
signup_per_email_and_network = "off"
verification_per_ip = "off"
verification_per_network = "off"
polls_per_ip = "off"
recovery_per_ip = "off"
per_wallet = "off"
quotes_per_wallet_and_network = "off"
topup_quotes_per_account = "off"
topup_polls_per_account = "off"

[gateway]
max_streams_per_key = 1000
stream_check = "250ms"

[signup]
bot_check = "{bot_check}"
poll_interval = "1s"

[billing]
internal_secret = "{secret}"

[sample]
block_time = "1s"

[payments]
claim_wait = "1ms"
"""

CHAIN = """
[chains.devnet]
chain_id = {chain_id}
recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
rpc_urls = ["{url}"]
confirmations = 2
watch = false
"""

PLAN = {
    "id": "starter",
    "chain_id": CHAIN_ID,
    "label": "Starter",
    "payment_kind": "native_value",
    "token_symbol": "ETH",
    "token_decimals": 18,
    "token_amount": "0.0025",
    "credits": 10,
    "bonus_credits": 0.5,
}


def schemathesis() -> Path:
    """The pinned tool, in a virtual environment of its own."""
    folder = TARGET / "tools/schemathesis-venv"
    installed = folder / "installed.txt"
    if not (installed.is_file() and filecmp.cmp(REQUIREMENTS, installed, shallow=False)):
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        pip = [folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        subprocess.run([*pip, "--only-binary", ":all:", "--require-hashes", "-r", REQUIREMENTS], check=True)
        # Copied last, so that an interrupted install is repeated.
        shutil.copyfile(REQUIREMENTS, installed)
    return folder / "bin/schemathesis"


class Program:
    """A program that runs until the block ends, and the address that it printed."""

    def __init__(self, name: str, command: list, environment: dict, address: str, log: Path):
        self.name, self.log, self.pattern = name, log, re.compile(address)
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def address(self) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := self.pattern.search(self.log.read_text(errors="replace")):
                return "http://" + found[1]
            time.sleep(0.05)
        raise SystemExit(f"{self.name} did not start:\n{self.log.read_text(errors='replace')}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def post(url: str, body: dict) -> dict:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def things(base: str, chain_url: str | None) -> dict[str, list]:
    """What requests can name, by parameter or field of a body, so that some of them find it."""
    signups = [{"email": f"{n}@example.com", "agent_name": f"agent-{n}"} for n in range(3)]
    sessions = [post(base + "/signup/initiate", signup) for signup in signups]
    codes = [session["user_code"] for session in sessions]
    found = {
        "pool_address": [POOL],
        "token_address": [TOKEN],
        "code": codes,
        "body.user_code": codes,
        "session_token": [session["session_token"] for session in sessions],
    }
    if chain_url:
        wanted = {"plan_id": PLAN["id"], "chain_id": CHAIN_ID, "token_symbol": PLAN["token_symbol"]}
        found |= {f"body.{name}": [value] for name, value in wanted.items()}
        wanted["agent_name"] = "payer"
        quotes = [post(base + "/signup/pay/quote", wanted | {"payer_address": payer}) for payer in PAYERS]
        hashes = []
        for payer, quote in zip(PAYERS, quotes):
            sent = {"from": payer, "to": quote["recipient"], "value": hex(int(quote["amount_atomic"]))}
            call = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction", "params": [sent]}
            hashes.append(post(chain_url, call)["result"])
        time.sleep(3)
        # The first is claimed, so that its wallet has an account; the others are left to the tool.
        post(base + "/signup/pay/claim", {"signup_nonce": quotes[0]["signup_nonce"], "tx_hash": hashes[0]})
        found["body.address"] = PAYERS[:1]
        found["body.tx_hash"] = hashes
        found["body.signup_nonce"] = [quote["signup_nonce"] for quote in quotes]
    return found


def dictionaries(found: dict[str, list]) -> str:
    """The same as settings of Schemathesis; half of the requests take their values from there."""
    text = ""
    for number, (name, values) in enumerate(found.items()):
        text += f"\n[dictionaries.d{number}]\nvalues = {json.dumps(values)}\n"
        text += f"[parameters.{json.dumps(name)}]\ndictionary = \"d{number}\"\nprobability = 0.5\n"
    return text


def run(options: argparse.Namespace, more: list[str], folder: Path, chain_url: str | None) -> int:
    # Variables of the caller's own service must not reach this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METERING_")}
    data, config = folder / "data", folder / "metering.toml"
    chain = CHAIN.format(chain_id=CHAIN_ID, url=chain_url) if chain_url else ""
    config.write_text(SERVER.format(secret=SECRET, bot_check=options.bot_check) + chain)

    def admin(*arguments) -> str:
        command = [options.programs / "metering", "admin", *arguments, "--data", data]
        return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    limits = ["--credits", "1000000", "--rpm", "0", "--rpd", "0", "--json"]
    account = json.loads(admin("account", "create", "--agent-name", "schemathesis", *limits))
    if chain_url:
        plans = folder / "plans.json"
        plans.write_text(json.dumps([PLAN]))
        admin("plan", "import", plans)
    command = [options.programs / "metering-server", "--config", config, "--data", data]
    log = folder / "server.log"
    with Program("metering-server", command, environment, r"listening +http://(\S+)", log) as server:
        base = server.address()
        settings = folder / "schemathesis.toml"
        found = things(base, chain_url)
        settings.write_text((HERE / "schemathesis.toml").read_text() + dictionaries(found))
        environment |= {"METERING_KEY": account["api_key"], "METERING_SECRET": SECRET, "HOOKS": str(HERE / "hooks.py")}
        tool = [options.tool, "--config-file", settings, "run", base + "/openapi.json", "--no-color"]
        tool += ["--seed", str(options.seed), "--max-examples", str(options.examples)]
        tool += ["--generation-database", "none", "--continue-on-failure"]
        # It would replace the key that all other requests are sent with.
        tool += ["--exclude-path", "/keys/current/rotate"]
        if options.reports:
            tool += ["--report", "ndjson,json", "--report-dir", options.reports.resolve(), "--output-sanitize", "false"]
        code = subprocess.run([*tool, *more], env=environment, cwd=folder).returncode
        with urllib.request.urlopen(base + "/ready", timeout=10) as ready:
            assert ready.status == 200
    problems = [line for line in log.read_text().splitlines() if re.search(r" ERROR |panicked", line)]
    for line in problems[:20]:
        print(f"server log: {line}")
    return code or bool(problems)


def main() -> int:
    # So that the programs are ended then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=__doc__.splitlines()[-1])
    parser.add_argument("--seed", type=int, default=1, help="repeats the choices of an earlier run")
    parser.add_argument("--examples", type=int, default=200, help="requests per operation that the fuzzing phase makes")
    parser.add_argument("--bot-check", default="off", help="`altcha` to test /signup/challenge")
    parser.add_argument("--programs", type=Path, default=TARGET / "debug", help="where metering-server and metering are")
    parser.add_argument("--reports", type=Path, help="a folder for the tool's reports")
    options, more = parser.parse_known_args()
    options.programs = options.programs.resolve()
    options.tool = schemathesis()
    with tempfile.TemporaryDirectory(prefix="schemathesis-") as name:
        folder = Path(name)
        if not ANVIL.exists():
            print("anvil is missing (`npm ci` in tests/chain installs it): nothing is on sale in this run")
            return run(options, more, folder, None)
        anvil = [ANVIL, "--port", "0", "--chain-id", str(CHAIN_ID), "--block-time", "1"]
        with Program("anvil", anvil, dict(os.environ), r"Listening on (\S+)", folder / "anvil.log") as chain:
            return run(options, more, folder, chain.address())


if __name__ == "__main__":
    sys.exit(main())
