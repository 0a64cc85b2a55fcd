//! Shape of a line: the text without its numbers, identifiers, paths, quoted texts and the values of
//! `key=value`.
//!
//! Pure. Lines of one shape were most likely printed by the same statement of a program, so they are one
//! group of unknown lines and one rule of a new filter. The form of an identifier is arbitrary: one of digits
//! and letters, of hexadecimal digits, a UUID and a host's name have the same shape.

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Constant text.
    Literal(&'a str),
    /// Digits, also several numbers joined by single `.` `,` `:` or `-`.
    Number(&'a str),
    /// An identifier: letters with digits, hexadecimal digits, `user@host`, `host.site.org`.
    Id(&'a str),
    Uuid(&'a str),
    /// A path, from `/` on or with two `/` in it.
    Path(&'a str),
    /// A text in quotes, including them.
    Quoted(&'a str),
    /// The text after `key=` or `key = `, with its quotes if it has some.
    Value(&'a str),
}

/// Minimum length at which letters alone count as hexadecimal digits: `decade` and `facade` are words.
const HEX_WORD_LEN_MIN: usize = 8;

/// The pieces of a line, in order.
pub(crate) fn pieces(line: &str) -> Vec<Piece<'_>> {
    let bytes = line.as_bytes();
    let mut pieces = Vec::new();
    let (mut at, mut literal) = (0, 0);
    while at < bytes.len() {
        let within_word = at > 0 && is_word(bytes[at - 1]);
        let rest = &line[at..];
        let found = match bytes[at] {
            _ if follows_key(&bytes[..at]) && !ends_value(bytes[at]) => Some(Piece::Value(value(rest))),
            b'"' | b'\'' if !within_word => quoted(rest).map(|len| Piece::Quoted(&rest[..len])),
            b'/' if !within_word => path(rest).map(|len| Piece::Path(&rest[..len])),
            byte if is_word(byte) && !within_word => word(rest),
            _ => None,
        };
        let Some(piece) = found else {
            // An ordinary word is skipped as a whole.
            at += match word_len(rest.as_bytes()) {
                0 => rest.chars().next().map_or(1, char::len_utf8),
                len => len,
            };
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
    /// Its text in the line.
    pub(crate) fn text(&self) -> &'a str {
        match self {
            Piece::Literal(text)
            | Piece::Number(text)
            | Piece::Id(text)
            | Piece::Uuid(text)
            | Piece::Path(text)
            | Piece::Quoted(text)
            | Piece::Value(text) => text,
        }
    }
}

/// The shape of a line as text: `job <n> done on <id>`.
pub(crate) fn shape(line: &str) -> String {
    let mut shape = String::with_capacity(line.len());
    for piece in pieces(line) {
        shape.push_str(match piece {
            Piece::Literal(text) => text,
            Piece::Number(_) => "<n>",
            Piece::Id(_) | Piece::Uuid(_) => "<id>",
            Piece::Path(_) => "<path>",
            Piece::Quoted(_) => "<\"…\">",
            Piece::Value(_) => "<v>",
        });
    }
    shape
}

/// The piece that starts here, at the start of a word; `None` for constant text.
fn word(rest: &str) -> Option<Piece<'_>> {
    let bytes = rest.as_bytes();
    let len = word_len(bytes);
    if is_uuid(rest) {
        return Some(Piece::Uuid(&rest[..36]));
    }
    if let Some(len) = relative_path(rest).or_else(|| colons(bytes)) {
        let text = &rest[..len];
        return Some(if text.contains('/') { Piece::Path(text) } else { Piece::Id(text) });
    }
    let number = number(bytes);
    if number >= len && !bytes.get(number).is_some_and(|byte| is_word(*byte)) {
        return Some(Piece::Number(&rest[..number]));
    }
    // A key, or the name of a function.
    if matches!(bytes.get(len), Some(b'=' | b'(')) {
        return None;
    }
    let text = &rest[..len];
    if names_one(text) {
        return Some(Piece::Id(text));
    }
    // `12:24:17Z`: the numbers before the word that ends them.
    let numbers = rest[..number].rfind([':', ','])?;
    Some(Piece::Number(&rest[..numbers]))
}

/// Whether a word is an identifier.
fn names_one(word: &str) -> bool {
    let has = |class: fn(&u8) -> bool| word.bytes().any(|byte| class(&byte));
    let letters = has(u8::is_ascii_alphabetic) || word.contains('_');
    let is_hex = word.len() >= HEX_WORD_LEN_MIN && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_host = word.bytes().filter(|byte| *byte == b'.').count() >= 2;
    letters && (has(u8::is_ascii_digit) || is_hex || is_host || word.contains('@'))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Length of the word that starts here: its parts may be joined by single `.`, `-` and `@`.
fn word_len(bytes: &[u8]) -> usize {
    let part = |from: usize| bytes[from..].iter().take_while(|byte| is_word(**byte)).count();
    let mut len = part(0);
    while len > 0 && matches!(bytes.get(len), Some(b'.' | b'-' | b'@')) {
        match part(len + 1) {
            0 => break,
            more => len += 1 + more,
        }
    }
    len
}

fn is_uuid(rest: &str) -> bool {
    let Some(start) = rest.as_bytes().get(..36) else { return false };
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    start.iter().enumerate().all(fits) && word_len(rest.as_bytes()) == 36
}

/// A network address in hexadecimal digits: `fe80:0:0:1`, `0c:c4:7a:00:1f:2e`.
fn colons(bytes: &[u8]) -> Option<usize> {
    let len = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit() || **byte == b':').count();
    let address = &bytes[..len];
    let many = address.iter().filter(|byte| **byte == b':').count() >= 3;
    let letters = address.iter().any(u8::is_ascii_alphabetic) && address.iter().any(u8::is_ascii_digit);
    let ends = address.last() != Some(&b':') && !bytes.get(len).is_some_and(|byte| is_word(*byte));
    (many && letters && ends).then_some(len)
}

/// Length of the path that starts with this `/`.
fn path(rest: &str) -> Option<usize> {
    let len = rest.bytes().position(ends_path).unwrap_or(rest.len());
    let len = rest[..len].trim_end_matches(['.', ':']).len();
    (!rest[..len].trim_matches('/').is_empty()).then_some(len)
}

/// A path without leading `/`: it contains two of them, and a letter, because dates may contain `/` too.
fn relative_path(rest: &str) -> Option<usize> {
    let inside = |byte: u8| is_word(byte) || b"/.+~%@-".contains(&byte);
    let len = rest.bytes().position(|byte| !inside(byte)).unwrap_or(rest.len());
    let text = rest[..len].trim_end_matches('.');
    let slashes = text.bytes().filter(|byte| *byte == b'/').count();
    (slashes >= 2 && text.bytes().any(|byte| byte.is_ascii_alphabetic())).then_some(text.len())
}

fn ends_path(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`,;()[]{}<>|".contains(&byte)
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

/// Whether these bytes end with `key=` or `key = `.
fn follows_key(before: &[u8]) -> bool {
    matches!(before, [.., key, b'='] | [.., key, b' ', b'=', b' '] if is_word(*key))
}

fn ends_value(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'=' | b',' | b';' | b')' | b']' | b'}' | b'&' | b'|')
}

/// The value that starts here, which is not empty.
fn value(rest: &str) -> &str {
    let in_quotes = if rest.starts_with(['"', '\'']) { quoted(rest) } else { None };
    let len = in_quotes.or_else(|| rest.bytes().position(ends_value)).unwrap_or(rest.len());
    &rest[..len]
}

/// Length of the quoted text that starts here; `None` if it is not closed.
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
        check("job 17 done on wn01", "job <n> done on <id>");
        check("from 10.0.0.1:4021 to wn[01-02,04]", "from <n> to wn[<n>]");
        check("id 3f2504e0-4f89-11d3-9a0c-0305e82c3301 ok", "id <id> ok");
        check("at 0x7ffe and deadbeef and cafe", "at <id> and <id> and cafe");
        check("12345678 is a number", "<n> is a number");
        check("user \"A B\" said 'no' isn't it", "user <\"…\"> said <\"…\"> isn't it");
        check("an open \" quote 5", "an open \" quote <n>");
        check("größe 5 €", "größe <n> €");
        check("", "");
        check("3.", "<n>.");
        check("a=5,b=<x (c=\"y z\") d= e==1 f=\"g h", "a=<v>,b=<v> (c=<v>) d= e==<n> f=<v> h");
        check("owner=größe; x", "owner=<v>; x");
        check("owner = ada@head, job name = first if a == b", "owner = <v>, job name = <v> if a == b");
        check("md5=0f sha256(x) took 3.5s", "md5=<v> sha256(x) took <id>");
        check("at 12:24:17.4Z or 2026-11-20T12:24:17", "at <n>:<id> or <id>:<n>");
        check("_slurm_rpc_submit job-array", "_slurm_rpc_submit job-array");
    }

    #[test]
    fn an_identifier_is_one_whatever_it_is_made_of() {
        let ids = [
            "a1b2c3",
            "0x7ffe",
            "9f86d081884c7d659a2feaa0c55ad015",
            "deadbeef",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "wn01",
            "tern-w07",
            "wn01.site.example",
            "head.site.example",
            "mrossi@head",
            "1.cm01.site.example",
            "17_3",
            "aVwLDmN3bkfn8kcIfmBFp2zn",
            "fe80:0:0:1f",
            "0c:c4:7a:00:1f:2e",
        ];
        for id in ids {
            assert_eq!(shape(&format!("the job {id}, lost")), "the job <id>, lost", "{id}");
        }
        for word in ["decade", "facade", "isn't", "slurmctld", "job_end", "read-only", "a.b", "e.g."] {
            assert_eq!(shape(word), word);
        }
    }

    #[test]
    fn paths_are_one_whatever_their_depth() {
        for path in
            ["/tmp", "/var/spool/x.1", "//se01:2811/data/f-1", "/C=XX/O=Grid/CN=ada", "data/run/x.dat"]
        {
            assert_eq!(shape(&format!("open {path}: no such file")), "open <path>: no such file", "{path}");
            assert_eq!(shape(&format!("opened ({path}).")), "opened (<path>).", "{path}");
        }
        for (line, expected) in [
            ("read/write and/or", "read/write and/or"),
            ("slot w07/3 on 20/11/2026", "slot <id>/<n> on <n>/<n>/<n>"),
            ("gsiftp://se01:2811/x", "gsiftp:<path>"),
            ("a / b //", "a / b //"),
        ] {
            assert_eq!(shape(line), expected);
        }
    }

    #[test]
    fn the_pieces_are_the_line() {
        for line in [
            "",
            "a 1 b",
            "é\"é\"é 0x1g",
            "1-2-3 'x",
            "deadbeef0 0x",
            "\u{1F600}7",
            "a=\u{1F600}=, b='",
            "/é/a é/1/x",
        ] {
            assert_eq!(pieces(line).iter().map(Piece::text).collect::<String>(), line);
        }
    }
}
