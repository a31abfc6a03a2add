//! A row that a batch has loaded, and whether it changed it.

use super::changes::HoldChange;
use crate::charging::hold::Hold;
use crate::charging::key_meter::KeyState;
use crate::charging::rate::Window;
use crate::charging::volume::Volume;

/// A loaded key.
#[derive(Debug)]
pub(super) struct TouchedKey {
    pub(super) state: KeyState,
    pub(super) changed: bool,
}

/// A loaded count.
#[derive(Debug, Clone)]
pub(super) struct TouchedVolume {
    pub(super) volume: Volume,
    pub(super) changed: bool,
}

/// A loaded window of tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct TouchedTokens {
    pub(super) window: Window,
    pub(super) changed: bool,
}

/// A hold that a batch opened, or has loaded.
#[derive(Debug)]
pub(super) struct TouchedHold<K, L> {
    pub(super) account: K,
    pub(super) line: L,
    pub(super) hold: Hold,
    pub(super) is_new: bool,
    pub(super) changed: bool,
}

impl<K, L> TouchedHold<K, L> {
    /// Replaces the hold by a changed one.
    pub(super) fn set(&mut self, hold: Hold) {
        (self.hold, self.changed) = (hold, true);
    }

    /// The row to write, if any.
    pub(super) fn into_change(self) -> Option<HoldChange<K, L>> {
        let Self { account, line, hold, is_new, changed } = self;
        (is_new || changed).then_some(HoldChange { account, line, is_new, hold })
    }
}
