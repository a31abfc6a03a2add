// The landing page: the meter, the signup form and the plans.

import { drums } from "/assets/decimal.js";
import { byId } from "/assets/dom.js";
import { showPlans } from "/assets/plans.js";
import { startSignup } from "/assets/signup.js";

const meter = byId("hero-meter");
if (meter) drums(meter, document.body.dataset.freeCredits, 4);
showPlans(byId("plans"));
startSignup();
