// The page about MCP: the same instructions as in the account, for all visitors.

import { showConnect } from "/assets/connect.js";
import { byId } from "/assets/dom.js";
import { ownKey } from "/assets/session.js";

showConnect(byId("connect"), ownKey);
