//! Tells the code of a script from its texts and comments: enough to find a module's imports and exports, and to remove
//! comments and indentation without touching a string.
//!
//! It is not a parser. A regular expression without an end is an error, so a wrong guess is noticed.

/// The kind of a byte of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    /// A string, a regular expression, or the text of a template string.
    Text,
    Comment,
}

/// A script, split into code, texts and comments.
#[derive(Debug)]
pub(super) struct Script<'s> {
    source: &'s str,
    kinds: Vec<Kind>,
    keywords: Vec<Keyword>,
}

/// The word `import` or `export` in the code of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keyword {
    /// Where it begins, in bytes.
    pub(super) at: usize,
    /// Whether it is outside of all brackets.
    pub(super) is_outside: bool,
}

/// Why a script cannot be read, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScriptError {
    /// Where, in bytes.
    pub(super) at: usize,
    pub(super) problem: &'static str,
}

impl<'s> Script<'s> {
    /// Reads a script.
    ///
    /// # Errors
    /// When a string, comment or bracket has no end, or `await` is outside of a function.
    pub(super) fn read(source: &'s str) -> Result<Self, ScriptError> {
        let mut reader = Reader {
            bytes: source.as_bytes(),
            at: 0,
            kinds: Vec::with_capacity(source.len()),
            keywords: Vec::new(),
            open: Vec::new(),
            arrow: false,
            last: Last::Operator,
        };
        while reader.at < source.len() {
            reader.step()?;
        }
        match reader.open.last() {
            Some(bracket) => Err(ScriptError { at: bracket.at, problem: "a bracket is not closed" }),
            None => Ok(Self { source, kinds: reader.kinds, keywords: reader.keywords }),
        }
    }

    /// Each `import` and `export`.
    pub(super) fn keywords(&self) -> &[Keyword] {
        &self.keywords
    }

    /// Where the statement at a position ends: after its semicolon.
    pub(super) fn end_of_statement(&self, at: usize) -> Option<usize> {
        let is_end = |(byte, kind): (u8, &Kind)| byte == b';' && *kind == Kind::Code;
        let length = self.source.bytes().zip(&self.kinds).skip(at).position(is_end)?;
        Some(at + length + 1)
    }

    /// The script without comments, indentation and empty lines.
    pub(super) fn compact(&self) -> String {
        let mut compact: Vec<u8> = Vec::with_capacity(self.source.len());
        // The separator between the next byte and the one before it.
        let mut gap: Option<u8> = None;
        for (byte, kind) in self.source.bytes().zip(&self.kinds) {
            match (kind, byte) {
                (Kind::Code | Kind::Comment, b'\n') => gap = Some(b'\n'),
                (Kind::Comment, _) | (Kind::Code, b' ' | b'\t' | b'\r') => gap = gap.or(Some(b' ')),
                _ => {
                    let separator = gap.take().filter(|_| !compact.is_empty());
                    compact.extend(separator);
                    compact.push(byte);
                }
            }
        }
        String::from_utf8_lossy(&compact).into_owned()
    }
}

/// An open bracket.
#[derive(Debug)]
struct Bracket {
    at: usize,
    /// What closes it.
    closer: u8,
    role: Role,
    /// Whether an arrow function without braces may continue: there was an arrow since the last `;` or `,`.
    arrow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Other,
    /// The condition of `if`, `for` and so on.
    Condition,
    /// The body of a function.
    Function,
    /// An expression in a template string.
    Template,
}

/// The end of the code before a position. A slash after an operand divides; otherwise it begins a regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Operator,
    Operand,
    /// A dot, after which every word is a property.
    Dot,
    /// A word that a condition follows.
    Control,
    /// The end of a condition.
    Condition,
    /// The end of other parentheses: of arguments, parameters or a group.
    Parentheses,
    Arrow,
}

struct Reader<'s> {
    bytes: &'s [u8],
    at: usize,
    kinds: Vec<Kind>,
    keywords: Vec<Keyword>,
    open: Vec<Bracket>,
    /// The same as `Bracket::arrow`, outside of all brackets.
    arrow: bool,
    last: Last,
}

impl Reader<'_> {
    fn step(&mut self) -> Result<(), ScriptError> {
        let (byte, next) = (self.bytes[self.at], self.bytes.get(self.at + 1).copied().unwrap_or(b'\n'));
        match (byte, next) {
            (b'/', b'/') => {
                let end = self.find(self.at, b"\n").unwrap_or(self.bytes.len());
                self.take(end, Kind::Comment);
            }
            (b'/', b'*') => {
                let end = self.find(self.at + 2, b"*/").ok_or_else(|| self.problem("a comment has no end"))?;
                self.take(end + 2, Kind::Comment);
            }
            (b'/', _) if !matches!(self.last, Last::Operand | Last::Parentheses) => self.regular_expression()?,
            (b'"' | b'\'', _) => self.string(byte)?,
            (b'`', _) => {
                self.take(self.at + 1, Kind::Text);
                self.template()?;
            }
            (b'(' | b'[' | b'{', _) => self.open(byte),
            (b')' | b']' | b'}', _) => self.close(byte)?,
            (b'=', b'>') => {
                self.take(self.at + 2, Kind::Code);
                *self.arrow() = true;
                self.last = Last::Arrow;
            }
            // Before or after an operand, which it stays.
            (b'+', b'+') | (b'-', b'-') => self.take(self.at + 2, Kind::Code),
            (b'.', b'.') => {
                // Spread: an expression follows.
                self.take(self.at + 3, Kind::Code);
                self.last = Last::Operator;
            }
            (b'.', _) => self.code(Last::Dot),
            (b';' | b',', _) => {
                *self.arrow() = false;
                self.code(Last::Operator);
            }
            _ if byte.is_ascii_whitespace() => self.take(self.at + 1, Kind::Code),
            _ if is_of_word(byte) => self.word()?,
            _ => self.code(Last::Operator),
        }
        Ok(())
    }

    fn problem(&self, problem: &'static str) -> ScriptError {
        ScriptError { at: self.at, problem }
    }

    fn find(&self, from: usize, text: &[u8]) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        rest.windows(text.len()).position(|window| window == text).map(|length| from + length)
    }

    /// Advances to `end`; the bytes before it are of this kind.
    fn take(&mut self, end: usize, kind: Kind) {
        self.at = end.min(self.bytes.len());
        self.kinds.resize(self.at, kind);
    }

    /// Takes one byte of code.
    fn code(&mut self, last: Last) {
        self.take(self.at + 1, Kind::Code);
        self.last = last;
    }

    fn arrow(&mut self) -> &mut bool {
        match self.open.last_mut() {
            Some(bracket) => &mut bracket.arrow,
            None => &mut self.arrow,
        }
    }

    fn open(&mut self, opener: u8) {
        let (closer, role) = match (opener, self.last) {
            (b'(', Last::Control) => (b')', Role::Condition),
            (b'(', _) => (b')', Role::Other),
            (b'[', _) => (b']', Role::Other),
            (_, Last::Arrow | Last::Parentheses) => (b'}', Role::Function),
            _ => (b'}', Role::Other),
        };
        self.open.push(Bracket { at: self.at, closer, role, arrow: false });
        self.code(Last::Operator);
    }

    fn close(&mut self, closer: u8) -> Result<(), ScriptError> {
        let bracket = self.open.pop().filter(|bracket| bracket.closer == closer);
        let role = bracket.ok_or_else(|| self.problem("a bracket is closed that is not open"))?.role;
        self.code(match (closer, role) {
            (b')', Role::Condition) => Last::Condition,
            (b')', _) => Last::Parentheses,
            (b']', _) => Last::Operand,
            // A block ends more often before a regular expression than an object before a division.
            _ => Last::Operator,
        });
        if role == Role::Template { self.template() } else { Ok(()) }
    }

    fn string(&mut self, quote: u8) -> Result<(), ScriptError> {
        let mut end = self.at + 1;
        loop {
            match self.bytes.get(end) {
                Some(b'\\') => end += 2,
                Some(b'\n') | None => return Err(self.problem("a string has no end on its line")),
                Some(byte) if *byte == quote => break,
                Some(_) => end += 1,
            }
        }
        self.take(end + 1, Kind::Text);
        self.last = Last::Operand;
        Ok(())
    }

    /// The text of a template string, up to its end or its next expression.
    fn template(&mut self) -> Result<(), ScriptError> {
        let mut end = self.at;
        loop {
            match (self.bytes.get(end), self.bytes.get(end + 1)) {
                (Some(b'\\'), _) => end += 2,
                (Some(b'`'), _) => {
                    self.take(end + 1, Kind::Text);
                    self.last = Last::Operand;
                    return Ok(());
                }
                (Some(b'$'), Some(b'{')) => {
                    self.take(end + 1, Kind::Text);
                    self.open.push(Bracket { at: self.at, closer: b'}', role: Role::Template, arrow: false });
                    self.code(Last::Operator);
                    return Ok(());
                }
                (Some(_), _) => end += 1,
                (None, _) => return Err(self.problem("a template string has no end")),
            }
        }
    }

    fn regular_expression(&mut self) -> Result<(), ScriptError> {
        let (mut end, mut in_class) = (self.at + 1, false);
        loop {
            match self.bytes.get(end) {
                Some(b'\\') => end += 2,
                Some(b'\n') | None => return Err(self.problem("a regular expression has no end on its line")),
                Some(b'/') if !in_class => break,
                Some(byte) => {
                    in_class = match byte {
                        b'[' => true,
                        b']' => false,
                        _ => in_class,
                    };
                    end += 1;
                }
            }
        }
        self.take(end + 1, Kind::Text);
        self.last = Last::Operand;
        Ok(())
    }

    fn word(&mut self) -> Result<(), ScriptError> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| !is_of_word(*byte)).unwrap_or(rest.len());
        let (at, word, is_property) = (self.at, &rest[..length], self.last == Last::Dot);
        let last = match word {
            _ if is_property => Last::Operand,
            b"import" | b"export" => {
                self.keywords.push(Keyword { at, is_outside: self.open.is_empty() });
                Last::Operand
            }
            b"await" => {
                let is_inside = |bracket: &Bracket| bracket.arrow || bracket.role == Role::Function;
                if !self.arrow && !self.open.iter().any(is_inside) {
                    return Err(self.problem("await is outside of a function"));
                }
                // `for await (`
                if self.last == Last::Control { Last::Control } else { Last::Operator }
            }
            b"if" | b"for" | b"while" | b"switch" | b"catch" | b"with" => Last::Control,
            b"return" | b"typeof" | b"case" | b"do" | b"else" | b"in" | b"of" | b"instanceof" | b"new" | b"delete"
            | b"void" | b"throw" | b"yield" => Last::Operator,
            _ => Last::Operand,
        };
        self.take(at + length, Kind::Code);
        self.last = last;
        Ok(())
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#') || !byte.is_ascii()
}

#[cfg(test)]
mod tests;
