// The settings of the account: who buys for it, who uses it and where, and everything that is stored of it.

import { showBilling } from "/assets/buyer.js";
import { showDevices } from "/assets/devices.js";
import { byId } from "/assets/dom.js";
import { downloadButton } from "/assets/download.js";
import { showMembers } from "/assets/members.js";

/** Fills the tab. `visit` is as in `showList`. */
export function showSettings(visit) {
  showBilling(visit);
  showMembers(byId("members-list"), visit);
  showDevices(byId("devices-list"), visit);
  byId("data-action").replaceChildren(downloadButton("Download everything (JSON)", "account.json", { key: visit.key() }, () => "/account/export", "application/json"));
}
