// Verifies a signed receipt with the browser's own cryptography: the steps of docs/provable-bills.md.

const TYPE = "metering-receipts+jws";
const SIGNATURE = "Its signature";

/** A receipt that is not valid; the message says why. */
export class ReceiptFault extends Error {}

/** Whether this browser can verify signatures of Ed25519. */
export async function canVerify() {
  try {
    return Boolean(await importKey(new Uint8Array(32).fill(9)));
  } catch {
    return false;
  }
}

/** The contents of a receipt, if one of the keys of a JWK set signed it. */
export async function verifyReceipt(text, set) {
  const parts = text.trim().split(".");
  if (parts.length !== 6) throw new ReceiptFault(`It has ${parts.length} parts separated by dots, and a complete receipt has six.`);
  const [payload, place, path, header, signed, signature] = parts;
  const statement = bytes(payload, "Its payload");
  const batch = await verifyBatch({ header, signed, signature }, set);
  const root = await rootOf(statement, place, bytes(path, "Its path"), batch.size);
  if (base64url(root) !== batch.root) throw new ReceiptFault("It was changed: it is not one of the receipts that were signed.");
  const stated = json(statement, "Its payload");
  if (stated.v !== 1) throw new ReceiptFault(`It has version ${stated.v} of the format, which this page cannot read.`);
  if (stated.iss !== batch.iss) throw new ReceiptFault(`It says that it is from ${stated.iss}, but its signature is from ${batch.iss}.`);
  return stated;
}

/** The signed statement of a receipt's batch. */
async function verifyBatch({ header, signed, signature }, set) {
  const { alg, kid, typ, crit } = json(bytes(header, SIGNATURE), SIGNATURE);
  if (!["EdDSA", "Ed25519"].includes(alg) || typ !== TYPE || crit !== undefined) throw new ReceiptFault("Its signature is not one of a receipt.");
  const named = (set?.keys ?? []).find((key) => key.kty === "OKP" && key.crv === "Ed25519" && key.kid === kid);
  if (!named) throw new ReceiptFault("The key that it names is not among these keys.");
  const key = await importKey(bytes(named.x, "The key"));
  const message = new TextEncoder().encode(`${header}.${signed}`);
  const isValid = await crypto.subtle.verify("Ed25519", key, bytes(signature, SIGNATURE), message);
  if (!isValid) throw new ReceiptFault("Its signature is not one of that key.");
  return json(bytes(signed, SIGNATURE), SIGNATURE);
}

/** The root of the tree with this leaf (RFC 9162, section 2.1.3.2). */
async function rootOf(statement, place, path, size) {
  const [, at, of] = /^(0|[1-9]\d{0,8})-([1-9]\d{0,8})$/.exec(place) ?? [];
  const isIn = Number(at) < Number(of) && Number(of) === size && path.length % 32 === 0;
  let [node, last] = [Number(at), Number(of) - 1];
  let hash = await sha256([0], statement);
  for (let begin = 0; isIn && begin < path.length; begin += 32) {
    const beside = path.subarray(begin, begin + 32);
    if (last === 0) return null;
    const isRight = node % 2 === 1 || node === last;
    hash = isRight ? await sha256([1], beside, hash) : await sha256([1], hash, beside);
    while (isRight && node % 2 === 0 && node !== 0) [node, last] = [node / 2, Math.floor(last / 2)];
    [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  }
  return isIn && last === 0 ? hash : null;
}

const importKey = (x) => crypto.subtle.importKey("jwk", { kty: "OKP", crv: "Ed25519", x: base64url(x) }, "Ed25519", false, ["verify"]);

const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(parts.map((part) => new Uint8Array(part))).arrayBuffer()));

/** Decodes base64url, accepting only the canonical form. */
const base64url = (data) => btoa(String.fromCharCode(...(data ?? []))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

function bytes(part, name) {
  try {
    const data = Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    if (base64url(data) === part) return data;
  } catch {
    // Not base64url: as below.
  }
  throw new ReceiptFault(`${name} is damaged.`);
}

function json(data, name) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data));
  } catch {
    throw new ReceiptFault(`${name} is damaged.`);
  }
}
