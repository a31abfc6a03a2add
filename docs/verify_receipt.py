"""Verifies a signed receipt of a request: python verify_receipt.py RECEIPT KEYS [ISSUER]

RECEIPT is a file with the value of the header Metering-Receipt, KEYS one with what /.well-known/metering-keys returned, and
ISSUER the URL of the service. Prints what the receipt states. Needs the package cryptography. See provable-bills.md."""
import base64, hashlib, json, re, sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def decode(part):
    data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if base64.urlsafe_b64encode(data).decode().rstrip("=") != part:
        raise ValueError("damaged: not base64url")
    return data


def root_of(leaf, node, last, path):  # RFC 9162, section 2.1.3.2
    top = hashlib.sha256(b"\0" + leaf).digest()
    for beside in (path[begin : begin + 32] for begin in range(0, len(path), 32)):
        if last == 0:
            return None
        is_right = node % 2 == 1 or node == last
        top = hashlib.sha256(b"\1" + (beside + top if is_right else top + beside)).digest()
        while is_right and node % 2 == 0 and node != 0:
            node, last = node // 2, last // 2
        node, last = node // 2, last // 2
    return top if last == 0 else None


def verify(receipt, keys, issuer=None):
    payload, place, path, header, signed, signature = receipt.strip().split(".")
    head, batch, stated = (json.loads(decode(part)) for part in (header, signed, payload))
    if head["alg"] not in ("EdDSA", "Ed25519") or head["typ"] != "metering-receipts+jws" or "crit" in head:
        raise ValueError("not signed as a receipt")
    x = {key.get("kid"): key.get("x") for key in keys["keys"] if key.get("crv") == "Ed25519"}[head["kid"]]
    Ed25519PublicKey.from_public_bytes(decode(x)).verify(decode(signature), f"{header}.{signed}".encode())
    node, size = map(int, re.fullmatch(r"(0|[1-9]\d*)-([1-9]\d*)", place, re.ASCII).groups())
    is_in = node < size == batch["size"] and root_of(decode(payload), node, size - 1, decode(path)) == decode(batch["root"])
    if not is_in or stated["v"] != 1 or stated["iss"] != batch["iss"] or issuer not in (None, stated["iss"]):
        raise ValueError("not one of the receipts that were signed, or of another service or version")
    return stated


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        print(json.dumps(verify(open(sys.argv[1]).read(), json.load(open(sys.argv[2])), *sys.argv[3:])))
    except (ValueError, KeyError, TypeError, AttributeError, InvalidSignature) as error:
        sys.exit(f"not valid: {type(error).__name__} {error}")
