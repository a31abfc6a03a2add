//! Pages of lines of text, written as a PDF file (ISO 32000). The same lines give the same bytes.

use std::collections::BTreeMap;

use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Date, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

use super::font::Font;

/// A4, in points. The origin is at the lower left.
const WIDTH: i16 = 595;
const HEIGHT: i16 = 842;
/// The left and right edge of the text, its first and its last line.
pub(super) const LEFT: i16 = 57;
pub(super) const RIGHT: i16 = WIDTH - LEFT;
pub(super) const TOP: i16 = HEIGHT - 70;
const BOTTOM: i16 = 60;

const FONT_NAME: Name<'static> = Name(b"F1");
const FONT: Name<'static> = Name(b"MTRING+Inter-Regular");
/// Glyphs have their own numbers.
const IDENTITY: SystemInfo<'static> = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// How dark text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    /// Black.
    Strong,
    /// Grey.
    Soft,
}

/// The metadata of a file.
#[derive(Debug)]
pub(super) struct About<'a> {
    pub(super) title: &'a str,
    pub(super) author: &'a str,
    /// RFC 3339, in UTC.
    pub(super) created_at: &'a str,
}

/// Pages that are being filled from top to bottom.
pub(super) struct Sheet {
    pages: Vec<Content>,
    y: i16,
    /// The glyphs in use, with their characters, so that readers can select and search text.
    glyphs: BTreeMap<u16, char>,
}

impl Sheet {
    pub(super) fn new() -> Self {
        Self { pages: vec![Content::new()], y: TOP, glyphs: BTreeMap::new() }
    }

    /// The height of the next line above the lower edge.
    pub(super) const fn y(&self) -> i16 {
        self.y
    }

    /// Continues at this height.
    pub(super) const fn move_to(&mut self, y: i16) {
        self.y = y;
    }

    /// Goes down, and to the next page where the text would leave this one.
    pub(super) fn down(&mut self, by: i16) {
        self.y -= by;
        if self.y < BOTTOM {
            self.pages.push(Content::new());
            self.y = TOP;
        }
    }

    /// Writes a line from `x` on, at the current height.
    pub(super) fn text(&mut self, x: i16, size: u8, ink: Ink, text: &str) {
        let font = Font::get();
        let mut encoded = Vec::with_capacity(2 * text.len());
        for character in text.chars() {
            let glyph = font.glyph(character);
            let shown = if glyph == 0 { char::REPLACEMENT_CHARACTER } else { character };
            self.glyphs.entry(glyph).or_insert(shown);
            encoded.extend(glyph.to_be_bytes());
        }
        let gray = if ink == Ink::Strong { 0.0 } else { 0.35 };
        let Some(page) = self.pages.last_mut() else { return };
        page.begin_text().set_fill_gray(gray).set_font(FONT_NAME, f32::from(size));
        page.next_line(f32::from(x), f32::from(self.y)).show(Str(&encoded)).end_text();
    }

    /// Draws a thin line across the page, a little below the current height.
    pub(super) fn rule(&mut self) {
        let y = f32::from(self.y - 6);
        let Some(page) = self.pages.last_mut() else { return };
        page.set_stroke_gray(0.8).set_line_width(0.5);
        page.move_to(f32::from(LEFT), y).line_to(f32::from(RIGHT), y).stroke();
    }

    /// The file.
    pub(super) fn finish(self, about: &About<'_>) -> Vec<u8> {
        let mut next = Ref::new(1);
        let [catalog, tree, info, font] = [(); 4].map(|()| next.bump());
        let mut pdf = Pdf::new();
        let ids: Vec<(Ref, Ref)> = self.pages.iter().map(|_| (next.bump(), next.bump())).collect();
        write_font(&mut pdf, font, &mut next, &self.glyphs);
        pdf.catalog(catalog).pages(tree).lang(TextStr("en"));
        let count = i32::try_from(ids.len()).unwrap_or(i32::MAX);
        pdf.pages(tree).kids(ids.iter().map(|(page, _)| *page)).count(count);
        for (content, (page, stream)) in self.pages.into_iter().zip(ids) {
            let mut written = pdf.page(page);
            written.parent(tree).contents(stream);
            written.media_box(Rect::new(0.0, 0.0, f32::from(WIDTH), f32::from(HEIGHT)));
            written.resources().fonts().pair(FONT_NAME, font);
            written.finish();
            pdf.stream(stream, &content.finish());
        }
        let mut document = pdf.document_info(info);
        document.title(TextStr(about.title)).author(TextStr(about.author));
        if let Some(date) = date(about.created_at) {
            document.creation_date(date);
        }
        document.finish();
        let id = about.title.as_bytes().to_vec();
        pdf.set_file_id((id.clone(), id));
        pdf.finish()
    }
}

fn write_font(pdf: &mut Pdf, id: Ref, next: &mut Ref, glyphs: &BTreeMap<u16, char>) {
    let font = Font::get();
    let [descendant, descriptor, unicode, file] = [(); 4].map(|()| next.bump());
    pdf.type0_font(id)
        .base_font(FONT)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(descendant)
        .to_unicode(unicode);
    let mut cid_font = pdf.cid_font(descendant);
    cid_font.subtype(CidFontType::Type0).base_font(FONT).system_info(IDENTITY).font_descriptor(descriptor);
    cid_font.default_width(0.0);
    let mut widths = cid_font.widths();
    for glyph in glyphs.keys() {
        widths.same(*glyph, *glyph, f32::from(font.width(*glyph)));
    }
    widths.finish();
    cid_font.finish();
    let [ascent, descent, capitals] = font.heights().map(f32::from);
    let [least, most] = [-1_000_i16, 3_000].map(f32::from);
    pdf.font_descriptor(descriptor)
        .name(FONT)
        .flags(FontFlags::SYMBOLIC)
        .bbox(Rect::new(least, least, most, most))
        .italic_angle(0.0)
        .ascent(ascent)
        .descent(descent)
        .cap_height(capitals)
        .stem_v(80.0)
        .font_file3(file);
    let mut cmap = UnicodeCmap::<u16>::new(Name(b"Inter-UTF16"), IDENTITY);
    for (glyph, character) in glyphs {
        cmap.pair(*glyph, *character);
    }
    pdf.cmap(unicode, &cmap.finish()).name(Name(b"Inter-UTF16")).system_info(IDENTITY);
    let mut stream = pdf.stream(file, &font.outlines);
    stream.filter(Filter::FlateDecode);
    stream.pair(Name(b"Subtype"), Name(b"CIDFontType0C"));
    stream.finish();
}

/// Reads a time such as `2026-11-21T08:00:00.005Z`.
fn date(text: &str) -> Option<Date> {
    let two = |from: usize| text.get(from..from + 2)?.parse::<u8>().ok();
    let date = Date::new(text.get(..4)?.parse().ok()?).month(two(5)?).day(two(8)?);
    Some(date.hour(two(11)?).minute(two(14)?).second(two(17)?).utc_offset_hour(0).utc_offset_minute(0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The lines of a file that this module wrote: what readers select.
    pub(in crate::receipt_file) fn lines(file: &[u8]) -> Vec<String> {
        let characters: BTreeMap<u16, char> = mapped(file);
        let operators = b" Tj\n";
        let ends = (0..file.len()).filter(|at| file[*at..].starts_with(operators));
        ends.map(|end| {
            let line = file[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let bytes = string(&file[line..end]);
            let glyphs = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            glyphs.map(|glyph| characters[&glyph]).collect()
        })
        .collect()
    }

    /// The characters of glyphs, as the file maps them.
    fn mapped(file: &[u8]) -> BTreeMap<u16, char> {
        let text = String::from_utf8_lossy(file);
        let pair = |line: &str| {
            let (glyph, character) = line.strip_prefix('<')?.strip_suffix('>')?.split_once("> <")?;
            let character = u32::from_str_radix(character, 16).ok()?;
            Some((u16::from_str_radix(glyph, 16).ok()?, char::from_u32(character)?))
        };
        let (_, mappings) = text.split_once("endcodespacerange").expect("the file maps glyphs");
        let (mappings, _) = mappings.split_once("endcmap").expect("the mapping ends");
        mappings.lines().filter_map(pair).collect()
    }

    /// The bytes of a string object: in hexadecimal, or with escapes.
    fn string(object: &[u8]) -> Vec<u8> {
        if let [b'<', digits @ .., b'>'] = object {
            return hex::decode(digits).unwrap();
        }
        let [b'(', inner @ .., b')'] = object else { panic!("{object:?} is not a string") };
        let (mut bytes, mut rest) = (Vec::new(), inner.iter().copied());
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'\\' => match rest.next().unwrap() {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'f' => 12,
                    digit @ b'0'..=b'7' => {
                        let digits = [digit, rest.next().unwrap(), rest.next().unwrap()];
                        u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 8).unwrap()
                    }
                    other => other,
                },
                other => other,
            });
        }
        bytes
    }

    const ABOUT: About<'_> = About { title: "Receipt R-1", author: "Söhne", created_at: "2026-11-21T08:00:00.005Z" };

    fn sheet(lines: &[&str]) -> Sheet {
        let mut sheet = Sheet::new();
        for line in lines {
            sheet.text(LEFT, 10, Ink::Strong, line);
            sheet.down(14);
        }
        sheet
    }

    #[test]
    fn text_can_be_selected() {
        let written = ["Größe (1) \\ “x”", "Żółw, Ελλάδα", "0xAbC"];
        assert_eq!(lines(&sheet(&written).finish(&ABOUT)), written);
    }

    #[test]
    fn the_same_lines_are_the_same_file_with_its_title_and_date() {
        let file = || sheet(&["one"]).finish(&ABOUT);
        assert_eq!(file(), file());
        let file = file();
        assert!(file.starts_with(b"%PDF-1.7\n") && file.ends_with(b"%%EOF"));
        let text = String::from_utf8_lossy(&file);
        for part in ["/Title (Receipt R-1)", "/CreationDate (D:20261121080000", "/Lang (en)", "/FontFile3"] {
            assert!(text.contains(part), "{part}");
        }
    }

    #[test]
    fn text_that_is_too_long_has_more_pages() {
        let many: Vec<&str> = vec!["line"; 120];
        let file = sheet(&many).finish(&ABOUT);
        assert_eq!(lines(&file).len(), 120);
        assert!(String::from_utf8_lossy(&file).contains("/Count 3"));
    }
}
