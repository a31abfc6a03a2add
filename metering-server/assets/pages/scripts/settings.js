// The settings of the account: billing details, members, signed-in browsers, child accounts, and the export of its
// data.

import { showBilling } from "/assets/buyer.js";
import { showChildren } from "/assets/children.js";
import { showDevices } from "/assets/devices.js";
import { byId } from "/assets/dom.js";
import { downloadButton } from "/assets/download.js";
import { showMembers } from "/assets/members.js";
import { allowed } from "/assets/rights.js";

/** Fills the tab. `visit` is as in `showList` and `showChildren`. */
export function showSettings(visit) {
  showBilling(visit);
  showMembers(byId("members-list"), visit);
  const children = byId("children");
  if (children) showChildren(children, visit);
  showDevices(byId("devices-list"), visit);
  byId("data-action").replaceChildren(
    ...allowed("own", downloadButton("Download everything (JSON)", "account.json", { key: visit.key() }, () => "/account/export", "application/json")),
  );
}
