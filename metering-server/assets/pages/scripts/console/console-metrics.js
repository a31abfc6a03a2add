// Metrics that need attention: the certificate, and the sources of chains. They are in the text format of
// Prometheus.

import { fetchText } from "/assets/api.js";

/** How long before its expiry a certificate is mentioned. */
const SOON_MS = 21 * 86_400_000;

/** The samples of a metric: the labels and the value of each, as text. */
export function samples(text, name) {
  const found = [];
  for (const line of text.split("\n")) {
    const match = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (match?.[1] !== name) continue;
    const labels = Object.fromEntries([...(match[2] ?? "").matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label, value]));
    found.push({ labels, value: match[3] });
  }
  return found;
}

/** The time at which the certificate expires, if that is soon, and the sources of chains that do not respond. */
export async function readMetrics(now = Date.now()) {
  const { text } = await fetchText("/metrics", { headers: { Accept: "text/plain" } });
  const [expiry] = samples(text, "metering_tls_certificate_expiry_timestamp_seconds");
  const at = expiry && Number(expiry.value) * 1_000;
  const down = samples(text, "metering_chain_source_up").filter(({ value }) => value === "0");
  return { certificate: at && at - now < SOON_MS ? new Date(at).toISOString() : null, sources: down.map(({ labels }) => ({ chain: labels.chain_id, source: labels.source })) };
}
