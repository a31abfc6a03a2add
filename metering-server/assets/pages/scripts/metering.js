// The landing page: the meter, the signup form and the plans.

import { showBuying } from "/assets/buying.js";
import { drums } from "/assets/decimal.js";
import { byId, h } from "/assets/dom.js";
import { showPlans } from "/assets/plans.js";
import { pretty } from "/assets/pretty.js";
import { rememberedKey } from "/assets/session.js";
import { startSignup } from "/assets/signup.js";

const meter = byId("hero-meter");
if (meter) drums(meter, document.body.dataset.freeCredits, 4);
const response = byId("sample-response");
response?.replaceChildren(...pretty(response.textContent));
showPlans(byId("plans"));
if (!rememberedKey()) showBuying(byId("buying"), "Sign up to continue to the payment. If you have a key, ", h("a", { href: "/metering/account#top-up" }, "sign in"), ".");
startSignup();
