//! Short texts without an allocation. The cache has one for each account.

/// A text of at most `N` bytes, followed by zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InlineText<const N: usize>([u8; N]);

impl<const N: usize> InlineText<N> {
    /// `None` if the text is too long, or has a zero.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        (!text.contains('\0')).then_some(Self(bytes))
    }

    pub(crate) fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);
        std::str::from_utf8(&self.0[..length]).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.first().is_none_or(|byte| *byte == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_fit_come_back() {
        for text in ["", "a", "org_", "Ähm"] {
            let inline = InlineText::<4>::of(text).unwrap();
            assert_eq!((inline.as_str(), inline.is_empty()), (text, text.is_empty()));
        }
        for text in ["five5", "Ähmm", "a\0"] {
            assert_eq!(InlineText::<4>::of(text), None);
        }
    }
}
