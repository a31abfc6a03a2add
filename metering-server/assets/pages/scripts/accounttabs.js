// What the account page needs besides signing in and the usage that it opens with. It is loaded after that, as one script.

export { showBuying } from "/assets/buying.js";
export { showChildren } from "/assets/children.js";
export { showConnect } from "/assets/connect.js";
export { showDevices } from "/assets/devices.js";
export { KeysTab } from "/assets/keys.js";
export { showMembers } from "/assets/members.js";
export { showReplace } from "/assets/replace.js";
export { showRotate } from "/assets/rotate.js";
export { TopUp } from "/assets/topup.js";
export { WebhooksTab } from "/assets/webhooks.js";
