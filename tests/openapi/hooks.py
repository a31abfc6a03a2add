"""What Schemathesis cannot know of this service: see "Explained" in docs/testing.md."""

import itertools
import json
import re

import schemathesis

# Refusals of well-formed requests that depend on the store, the configuration, the chain or a wallet's key.
STATE = {
    "address_mismatch",
    "challenge_failed",
    "invalid_code",
    "invalid_signature",
    "payer_mismatch",
    "payment_mismatch",
    "unknown_plan",
    "unsupported_chain",
    "unsupported_token",
}

_count = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    """A key names one request; the tool sends the same few again and again, and would see 409 and 422 only."""
    headers = case.headers or {}
    key = headers.get("Idempotency-Key")
    number = f"-{next(_count)}"
    if not isinstance(key, str):
        return
    if re.fullmatch(r"[!#-~][!-~]{0,127}", key):
        headers["Idempotency-Key"] = key[: 128 - len(number)] + number
    elif re.fullmatch(r'"([!#-\[\]-~]|\\["\\]){1,128}"', key):
        characters = re.findall(r"\\.|.", key[1:-1])[: 128 - len(number)]
        headers["Idempotency-Key"] = f'"{"".join(characters)}{number}"'


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """False for a failure that is explained."""
    if failure.code == "ST203":
        # The tool leaves the billing secret out too, and that is checked first.
        return not (case.path.startswith("/internal/") and response.status_code == 403)
    if failure.code != "ST202":
        return True
    if "x-sample-data" in response.headers:
        # The sample feed's own refusal, as any upstream may have one. The gateway's own do not have this header.
        return False
    if case.method.upper() == "HEAD":
        # Without a body nothing says why; GET is tested too.
        return False
    try:
        body = json.loads(response.content)
    except ValueError:
        return True
    fields = body.get("fields", {})
    explained = (
        body.get("error") in STATE
        # The checksum of an address in mixed case.
        or any("EIP-55" in problem for problem in fields.values())
        # 57.0 is an integer of JSON Schema.
        or any("floating point" in problem for problem in fields.values())
        # At most six decimals. `multipleOf` would say so, but is not exact in validators that compute with floats.
        or {"credit_weight", "history_multiplier"} & fields.keys()
        # The first day of a statement must not be after the last, nor a year before it.
        or "from" in fields
        # Invisible characters.
        or "email" in fields and not _email_of(case).isascii()
    )
    return not explained


def _email_of(case):
    return str(case.body.get("email")) if isinstance(case.body, dict) else ""
