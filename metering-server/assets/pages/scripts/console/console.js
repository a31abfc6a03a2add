// Starts the operator's pages: the session, then the view that the fragment names.

import { accounts } from "/assets/console-accounts.js";
import { account } from "/assets/console-account.js";
import { attentionPage } from "/assets/console-attention-page.js";
import { audit } from "/assets/console-audit.js";
import { catalogue } from "/assets/console-catalogue.js";
import { operators } from "/assets/console-operators.js";
import { overview } from "/assets/console-overview.js";
import { payments } from "/assets/console-payments.js";
import { plans } from "/assets/console-plans.js";
import { price } from "/assets/console-price.js";
import { prices } from "/assets/console-prices.js";
import { closeView, openView, startRouter } from "/assets/console-router.js";
import { search, startSearch } from "/assets/console-search.js";
import { startSession } from "/assets/console-session.js";
import { startFigures } from "/assets/figure.js";

startFigures();
startRouter([
  [/^\/overview$/, overview],
  [/^\/attention$/, attentionPage],
  [/^\/accounts(?:\?.*)?$/, accounts],
  [/^\/accounts\/([^/?]+)(?:\?.*)?$/, account],
  [/^\/payments(?:\?.*)?$/, payments],
  [/^\/search(?:\?.*)?$/, search],
  [/^\/plans(?:\?.*)?$/, plans],
  [/^\/catalogue$/, catalogue],
  [/^\/prices$/, prices],
  [/^\/prices\/([1-9]\d*)$/, price],
  [/^\/audit(?:\?.*)?$/, audit],
  [/^\/operators(?:\?.*)?$/, operators],
]);
startSearch();
startSession({ opened: openView, closed: closeView });
