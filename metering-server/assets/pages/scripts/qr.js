// A QR code as an SVG. Black on white in both colour schemes, with a quiet zone of four modules (ISO/IEC 18004).

import { s } from "/assets/dom.js";
import { encode } from "/assets/uqr.js";

const QUIET_ZONE = 4;

/** The code of a text. `label` describes it to people who cannot see it. */
export function qrCode(text, label) {
  const { data, size } = encode(text, { ecc: "M", border: QUIET_ZONE });
  const dark = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return s(
    "svg",
    { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" },
    s("rect", { class: "qr-light", width: size, height: size }),
    s("path", { class: "qr-dark", d: dark }),
  );
}
