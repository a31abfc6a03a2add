//! The font of receipts: Inter, with the letters of Latin, Greek and Cyrillic scripts. Measures text, breaks it into lines
//! and encodes it as glyphs.

use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use ttf_parser::{Face, Tag};

/// `subset.py`, beside it, makes it of Inter.
static FILE: &[u8] = include_bytes!("../../assets/receipt/Inter-Regular-subset.otf");

static FONT: LazyLock<Font> = LazyLock::new(Font::read);

/// Measures of a font are thousandths of its size.
const UNITS: u32 = 1_000;

/// A font that is embedded in files.
pub(super) struct Font {
    face: Face<'static>,
    /// Its outlines, compressed as streams of PDF files are (`FlateDecode`).
    pub(super) outlines: Vec<u8>,
}

impl Font {
    pub(super) fn get() -> &'static Self {
        &FONT
    }

    fn read() -> Self {
        let face = Face::parse(FILE, 0).expect("the font is part of the program");
        let outlines = face.raw_face().table(Tag::from_bytes(b"CFF ")).expect("the font has outlines");
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        let compressed = encoder.write_all(outlines).and_then(|()| encoder.finish());
        Self { face, outlines: compressed.expect("writing to memory does not fail") }
    }

    /// The glyph of a character; 0, which is drawn as a box, if the font has none.
    pub(super) fn glyph(&self, character: char) -> u16 {
        self.face.glyph_index(character).map_or(0, |glyph| glyph.0)
    }

    /// Whether it has all characters of a text.
    pub(super) fn covers(&self, text: &str) -> bool {
        text.chars().all(|character| self.glyph(character) != 0)
    }

    /// The width of a glyph.
    pub(super) fn width(&self, glyph: u16) -> u16 {
        let advance = self.face.glyph_hor_advance(ttf_parser::GlyphId(glyph)).unwrap_or_default();
        self.scaled(advance)
    }

    /// Ascent, descent, which is below zero, and the height of capitals.
    pub(super) fn heights(&self) -> [i16; 3] {
        let face = &self.face;
        let capitals = face.capital_height().unwrap_or(face.ascender());
        let scaled = |height: i16| i32::from(height) * 1_000 / i32::from(face.units_per_em()).max(1);
        [face.ascender(), face.descender(), capitals].map(|height| i16::try_from(scaled(height)).unwrap_or_default())
    }

    /// Breaks a text into lines of at most `width` points at this size: between words, or in a word that is longer.
    pub(super) fn lines(&self, text: &str, size: u8, width: u16) -> Vec<String> {
        let most = u32::from(width) * UNITS / u32::from(size).max(1);
        let mut lines = vec![String::new()];
        let mut used = 0;
        for word in text.split_inclusive(' ') {
            let wide = self.width_of(word.trim_end());
            if used > 0 && used + wide > most {
                lines.push(String::new());
                used = 0;
            }
            for character in word.chars() {
                let wide = u32::from(self.width(self.glyph(character)));
                if used > 0 && used + wide > most && character != ' ' {
                    lines.push(String::new());
                    used = 0;
                }
                if let Some(line) = lines.last_mut() {
                    line.push(character);
                }
                used += wide;
            }
        }
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }

    fn width_of(&self, text: &str) -> u32 {
        text.chars().map(|character| u32::from(self.width(self.glyph(character)))).sum()
    }

    fn scaled(&self, units: u16) -> u16 {
        let scaled = u32::from(units) * UNITS / u32::from(self.face.units_per_em()).max(1);
        u16::try_from(scaled).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_europe_have_glyphs() {
        let font = Font::get();
        for text in ["Żółw Łódź", "Çağrı İş", "Ελλάδα Α.Ε.", "Київ ООО №1", "“Größe” – 1 €", "Ştefan", "Đặng"]
        {
            assert!(font.covers(text), "{text}");
        }
        assert!(!font.covers("株式会社"));
        assert_eq!(font.glyph('株'), 0);
        assert!(font.width(font.glyph('m')) > font.width(font.glyph('i')));
    }

    #[test]
    fn lines_break_between_words_and_in_long_ones() {
        let font = Font::get();
        assert_eq!(font.lines("one line", 10, 200), ["one line"]);
        assert_eq!(font.lines("", 10, 200), [""]);
        let words = font.lines("several words that need more than one line", 10, 80);
        assert!(words.len() > 2, "{words:?}");
        assert_eq!(words.join(" "), "several words that need more than one line");
        let hash = format!("0x{}", "ab".repeat(32));
        let parts = font.lines(&hash, 10, 100);
        assert!(parts.len() > 2 && parts.concat() == hash, "{parts:?}");
        for line in words.iter().chain(&parts) {
            assert!(font.width_of(line) * 10 <= 100 * UNITS, "{line}");
        }
    }
}
