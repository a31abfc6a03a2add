//! Invisible characters. In a name that people compare by eye, they make two different names look the same.

/// Unicode 16 characters of the general category Cf (format characters, such as U+202E, which reverses the text after
/// it) or with the property `Default_Ignorable_Code_Point` (drawn as nothing).
const INVISIBLE: [(char, char); 25] = [
    ('\u{AD}', '\u{AD}'),
    ('\u{34F}', '\u{34F}'),
    ('\u{600}', '\u{605}'),
    ('\u{61C}', '\u{61C}'),
    ('\u{6DD}', '\u{6DD}'),
    ('\u{70F}', '\u{70F}'),
    ('\u{890}', '\u{891}'),
    ('\u{8E2}', '\u{8E2}'),
    ('\u{115F}', '\u{1160}'),
    ('\u{17B4}', '\u{17B5}'),
    ('\u{180B}', '\u{180F}'),
    ('\u{200B}', '\u{200F}'),
    ('\u{202A}', '\u{202E}'),
    ('\u{2060}', '\u{206F}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{FE00}', '\u{FE0F}'),
    ('\u{FEFF}', '\u{FEFF}'),
    ('\u{FFA0}', '\u{FFA0}'),
    ('\u{FFF0}', '\u{FFFB}'),
    ('\u{110BD}', '\u{110BD}'),
    ('\u{110CD}', '\u{110CD}'),
    ('\u{13430}', '\u{1343F}'),
    ('\u{1BCA0}', '\u{1BCA3}'),
    ('\u{1D173}', '\u{1D17A}'),
    ('\u{E0000}', '\u{E0FFF}'),
];

/// Whether the character is invisible: a control, a format character, or one without a glyph. White space, except
/// control characters, is not.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    c.is_control() || INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_found() {
        for c in ['\0', '\n', '\u{7F}', '\u{85}', '\u{AD}', '\u{200B}', '\u{202E}', '\u{2069}', '\u{FEFF}', '\u{E0041}']
        {
            assert!(is_invisible(c), "{c:?}");
        }
        for c in ['a', '@', '.', ' ', 'ö', 'ß', 'é', '例', 'م', '\u{301}', '😀'] {
            assert!(!is_invisible(c), "{c:?}");
        }
    }

    #[test]
    fn the_ranges_are_in_order() {
        let bounds: Vec<_> = INVISIBLE.iter().flat_map(|(first, last)| [first, last]).collect();
        assert!(bounds.is_sorted());
    }
}
