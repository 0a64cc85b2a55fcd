//! The shape of a line: what stays when numbers, hexadecimal words, UUIDs, quoted texts and the values of
//! `key=value` are taken out.
//!
//! Pure. Lines of one shape were most likely printed by the same statement of a program, so they are one
//! group of unknown lines and one rule of a new filter.

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Stands for itself.
    Literal(&'a str),
    /// Digits, also several numbers joined by single `.` `,` `:` or `-`.
    Number(&'a str),
    /// `0x7f`, or 8 and more hexadecimal digits with a letter among them.
    Hex(&'a str),
    /// A UUID.
    Uuid(&'a str),
    /// A text in quotes, with them.
    Quoted(&'a str),
    /// What follows `key=`, with its quotes if it has some.
    Value(&'a str),
}

/// The pieces of a line, in order.
pub(crate) fn pieces(line: &str) -> Vec<Piece<'_>> {
    let bytes = line.as_bytes();
    let mut pieces = Vec::new();
    let (mut at, mut literal) = (0, 0);
    while at < bytes.len() {
        let within_word = at > 0 && bytes[at - 1].is_ascii_alphanumeric();
        let rest = &line[at..];
        let found = match bytes[at] {
            _ if follows_key(&bytes[..at]) && !ends_value(bytes[at]) => Some(Piece::Value(value(rest))),
            b'"' | b'\'' if !within_word => quoted(rest).map(|len| Piece::Quoted(&rest[..len])),
            byte if byte.is_ascii_hexdigit() => special(rest, within_word),
            _ => None,
        };
        let Some(piece) = found else {
            at += line[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        if literal < at {
            pieces.push(Piece::Literal(&line[literal..at]));
        }
        at += piece.text().len();
        literal = at;
        pieces.push(piece);
    }
    if literal < line.len() {
        pieces.push(Piece::Literal(&line[literal..]));
    }
    pieces
}

impl<'a> Piece<'a> {
    /// The text it stands for.
    pub(crate) fn text(&self) -> &'a str {
        match self {
            Piece::Literal(text)
            | Piece::Number(text)
            | Piece::Hex(text)
            | Piece::Uuid(text)
            | Piece::Quoted(text)
            | Piece::Value(text) => text,
        }
    }
}

/// The shape of a line as text: `job <n> done on wn<n>`.
pub(crate) fn shape(line: &str) -> String {
    let mut shape = String::with_capacity(line.len());
    for piece in pieces(line) {
        shape.push_str(match piece {
            Piece::Literal(text) => text,
            Piece::Number(_) => "<n>",
            Piece::Hex(_) => "<hex>",
            Piece::Uuid(_) => "<uuid>",
            Piece::Quoted(_) => "<\"…\">",
            Piece::Value(_) => "<v>",
        });
    }
    shape
}

fn special(rest: &str, within_word: bool) -> Option<Piece<'_>> {
    if !within_word {
        if is_uuid(rest) {
            return Some(Piece::Uuid(&rest[..36]));
        }
        if let Some(len) = hex(rest) {
            return Some(Piece::Hex(&rest[..len]));
        }
    }
    let len = number(rest.as_bytes());
    (len > 0).then(|| Piece::Number(&rest[..len]))
}

fn ends_word(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

fn is_uuid(rest: &str) -> bool {
    let Some(start) = rest.as_bytes().get(..36) else { return false };
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    start.iter().enumerate().all(fits) && ends_word(rest.as_bytes(), 36)
}

fn hex(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let prefix = if rest.starts_with("0x") || rest.starts_with("0X") { 2 } else { 0 };
    let digits = bytes[prefix..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let len = prefix + digits;
    let word = &bytes[prefix..len];
    let mixed = word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic);
    let long_enough = if prefix > 0 { digits > 0 } else { digits >= 8 && mixed };
    (long_enough && ends_word(bytes, len)).then_some(len)
}

fn number(bytes: &[u8]) -> usize {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut len = digits(0);
    while len > 0 && matches!(bytes.get(len), Some(b'.' | b',' | b':' | b'-')) {
        match digits(len + 1) {
            0 => break,
            more => len += 1 + more,
        }
    }
    len
}

/// Whether these bytes end with `key=`.
fn follows_key(before: &[u8]) -> bool {
    matches!(before, [.., key, b'='] if key.is_ascii_alphanumeric() || *key == b'_')
}

fn ends_value(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'=' | b',' | b';' | b')' | b']' | b'}' | b'&' | b'|')
}

/// The value that begins here, which is not empty.
fn value(rest: &str) -> &str {
    let in_quotes = if rest.starts_with(['"', '\'']) { quoted(rest) } else { None };
    let len = in_quotes.or_else(|| rest.bytes().position(ends_value)).unwrap_or(rest.len());
    &rest[..len]
}

/// How long the quoted text is that begins here; nothing where it does not end.
fn quoted(rest: &str) -> Option<usize> {
    let quote = rest.chars().next()?;
    rest[1..].find(quote).map(|end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_lines_have_one_shape() {
        let check = |line: &str, expected: &str| assert_eq!(shape(line), expected, "{line}");
        check("job 17 done on wn01", "job <n> done on wn<n>");
        check("from 10.0.0.1:4021 to wn[01-02,04]", "from <n> to wn[<n>]");
        check("id 3f2504e0-4f89-11d3-9a0c-0305e82c3301 ok", "id <uuid> ok");
        check("at 0x7ffe and deadbeef01 and cafe", "at <hex> and <hex> and cafe");
        check("12345678 is a number", "<n> is a number");
        check("user \"A B\" said 'no' isn't it", "user <\"…\"> said <\"…\"> isn't it");
        check("an open \" quote 5", "an open \" quote <n>");
        check("größe 5 €", "größe <n> €");
        check("", "");
        check("3.", "<n>.");
        check("a=5,b=x (c=\"y z\") d= e==1 f=\"g h", "a=<v>,b=<v> (c=<v>) d= e==<n> f=<v> h");
        check("owner=größe; x", "owner=<v>; x");
    }

    #[test]
    fn the_pieces_are_the_line() {
        for line in
            ["", "a 1 b", "é\"é\"é 0x1g", "1-2-3 'x", "deadbeef0 0x", "\u{1F600}7", "a=\u{1F600}=, b='"]
        {
            assert_eq!(pieces(line).iter().map(Piece::text).collect::<String>(), line);
        }
    }
}
