// Replaces the key with the key itself as proof. The request has an idempotency key, which this tab remembers until the
// new key has arrived, so a lost response can be recovered.

import { callApi } from "/assets/api.js";
import { forgetRotation, rememberRotation, rememberedRotation } from "/assets/session.js";

/** Replaces `key`, or gets the key that an earlier attempt replaced it with. Returns the new key. */
export async function rotateKey(key) {
  const earlier = rememberedRotation();
  const rotation = earlier ?? secretText();
  // Remembered before it is sent: if this page goes away now, the new key must not be lost.
  rememberRotation(rotation);
  try {
    const { api_key: fresh } = await callApi("/keys/current/rotate", { method: "POST", key, headers: { "Idempotency-Key": rotation } });
    return fresh;
  } catch (error) {
    // With these errors, the first attempt replaced nothing. On a retry, only `unauthorized` is final.
    const isOver = earlier ? ["unauthorized"] : ["unauthorized", "validation_failed", "rate_limited", "storage_unavailable"];
    if (isOver.includes(error.code)) forgetRotation();
    throw error;
  }
}

/** 256 random bits. */
export function secretText() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
