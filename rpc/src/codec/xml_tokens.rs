//! Tokenizer of XML requests: decoded, bounded, without any DTD.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Invariant: memory is bounded by the limits: depth, nodes and attributes are counted as they are read,
//! entities are the five of XML and character references, text keeps the size it has in the request.
//! Not here: what the elements mean (`xmlrpc`).

use crate::fault::Fault;
use crate::limits::Limits;
use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};
use std::borrow::Cow;
use wire::fault;

/// The elements of XML-RPC, most frequent first, whose names need no copy.
const ELEMENTS: &[&str] = &[
    "value",
    "name",
    "member",
    "string",
    "int",
    "i4",
    "i8",
    "double",
    "boolean",
    "param",
    "params",
    "struct",
    "array",
    "data",
    "methodCall",
    "methodName",
    "nil",
    "base64",
];

/// A token of the document.
#[derive(Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// A start tag, with its name.
    Open(Cow<'a, str>),
    /// The end tag of the innermost open element.
    Close,
    /// Characters; one run of text may be several tokens.
    Text(Cow<'a, str>),
    /// End of the document.
    End,
}

/// Tokenizer of one document.
pub(crate) struct Tokens<'a> {
    reader: Reader<&'a [u8]>,
    limits: &'a Limits,
    depth: usize,
    nodes: usize,
    attributes: usize,
    /// The start tag of an empty element was returned; its end tag is next.
    empty_open: bool,
    root_seen: bool,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(document: &'a str, limits: &'a Limits) -> Tokens<'a> {
        let mut reader = Reader::from_str(document);
        let config = reader.config_mut();
        config.check_end_names = true;
        config.check_comments = true;
        Tokens { reader, limits, depth: 0, nodes: 0, attributes: 0, empty_open: false, root_seen: false }
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, Fault> {
        if std::mem::take(&mut self.empty_open) {
            self.depth -= 1;
            return Ok(Token::Close);
        }
        loop {
            self.nodes += 1;
            if self.nodes > self.limits.nodes {
                return Err(complex(format!("expected at most {} elements and texts", self.limits.nodes)));
            }
            match self.reader.read_event() {
                Ok(Event::Start(start)) => return self.open(&start),
                Ok(Event::Empty(start)) => {
                    self.empty_open = true;
                    return self.open(&start);
                }
                Ok(Event::End(_)) => {
                    self.depth -= 1;
                    return Ok(Token::Close);
                }
                Ok(Event::Text(text)) => return Ok(Token::Text(lines(text.into_inner()))),
                Ok(Event::CData(text)) => return Ok(Token::Text(lines(text.into_inner()))),
                Ok(Event::GeneralRef(entity)) => return self.entity(&entity),
                Ok(Event::Comment(_)) => {}
                Ok(Event::Decl(_)) if self.nodes == 1 => {}
                Ok(Event::Decl(_)) => {
                    return Err(self.malformed("an XML declaration that is not at the start"));
                }
                Ok(Event::PI(_)) => {
                    let message = "expected elements and text, found a processing instruction; send none";
                    return Err(Fault::new(fault::FORBIDDEN_XML, message));
                }
                Ok(Event::DocType(_)) => {
                    let message =
                        "expected no document type declaration, found one; send the call without it";
                    return Err(Fault::new(fault::FORBIDDEN_XML, message));
                }
                Ok(Event::Eof) if self.depth > 0 => {
                    return Err(self.malformed("the end with elements still open"));
                }
                Ok(Event::Eof) => return Ok(Token::End),
                // The parser's own message may repeat parts of the request, so only the position is reported.
                Err(_) => return Err(self.malformed("something else")),
            }
        }
    }

    fn open(&mut self, start: &BytesStart<'a>) -> Result<Token<'a>, Fault> {
        if self.depth == 0 && std::mem::replace(&mut self.root_seen, true) {
            return Err(self.malformed("a second root element"));
        }
        self.depth += 1;
        if self.depth > self.limits.depth {
            return Err(complex(format!("expected elements at most {} deep", self.limits.depth)));
        }
        for attribute in start.attributes() {
            if attribute.is_err() {
                return Err(self.malformed("a malformed or repeated attribute"));
            }
            self.attributes += 1;
            if self.attributes > self.limits.attributes {
                return Err(complex(format!("expected at most {} attributes", self.limits.attributes)));
            }
        }
        let name = start.name();
        let name: &str = name.as_ref();
        if let Some(known) = ELEMENTS.iter().find(|known| **known == name) {
            return Ok(Token::Open(Cow::Borrowed(known)));
        }
        if name.is_empty() || !name.chars().all(is_name_char) {
            return Err(self.malformed("a tag without a name"));
        }
        Ok(Token::Open(Cow::Owned(shown(name).to_owned())))
    }

    fn entity(&self, entity: &BytesRef<'_>) -> Result<Token<'a>, Fault> {
        match entity.resolve_char_ref() {
            Ok(Some(character)) if is_xml_char(character) => {
                return Ok(Token::Text(Cow::Owned(character.to_string())));
            }
            Ok(Some(character)) => return Err(forbidden_character(character)),
            Err(_) => return Err(self.malformed("a reference to no character")),
            Ok(None) => {}
        }
        let name: &str = entity.as_ref();
        let resolved = match name {
            "amp" => "&",
            "lt" => "<",
            "gt" => ">",
            "quot" => "\"",
            "apos" => "'",
            _ => {
                let message = "expected only the entities amp, lt, gt, quot and apos, found another; write the character itself";
                return Err(Fault::new(fault::FORBIDDEN_XML, message));
            }
        };
        Ok(Token::Text(Cow::Borrowed(resolved)))
    }

    fn malformed(&self, found: &str) -> Fault {
        let at = self.reader.buffer_position();
        Fault::parse(format!("expected well-formed XML, found {found} near byte {at}"))
    }

    /// Fault of a well-formed document that has `found` where `expected` belongs.
    pub(crate) fn unexpected(&self, expected: &str, found: &str) -> Fault {
        let at = self.reader.buffer_position();
        Fault::invalid_request(format!("expected {expected}, found {found} near byte {at}"))
    }
}

/// Decode the bytes of a request to characters that XML allows.
pub(crate) fn decode(body: &[u8]) -> Result<Cow<'_, str>, Fault> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    if body.starts_with(b"\xFE\xFF")
        || body.starts_with(b"\xFF\xFE")
        || body.iter().take(4).any(|byte| *byte == 0)
    {
        return Err(unsupported("UTF-16 or UTF-32"));
    }
    let text = match declared_encoding(body) {
        None => utf8(body)?,
        Some(name) if is_any(&name, &["utf-8", "utf8"]) => utf8(body)?,
        Some(name) if is_any(&name, &["us-ascii", "ascii"]) => {
            if let Some(at) = body.iter().position(|byte| !byte.is_ascii()) {
                return Err(Fault::new(
                    fault::CHARACTER,
                    format!("expected US-ASCII as declared, found byte {at} above 127"),
                ));
            }
            utf8(body)?
        }
        Some(name) if is_any(&name, &["iso-8859-1", "latin1", "iso8859-1"]) => {
            Cow::Owned(body.iter().map(|byte| char::from(*byte)).collect())
        }
        Some(name) => return Err(unsupported(shown(&name))),
    };
    // For nearly every request the bytes alone show that it is valid: U+FFFE and U+FFFF start with EF.
    if text.bytes().all(|byte| (byte >= b' ' && byte != 0xEF) || matches!(byte, b'\t' | b'\n' | b'\r')) {
        return Ok(text);
    }
    match text.chars().find(|character| !is_xml_char(*character)) {
        Some(character) => Err(forbidden_character(character)),
        None => Ok(text),
    }
}

/// Whether XML 1.0 allows this character.
pub(crate) fn is_xml_char(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

fn is_name_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | ':' | '-' | '.') || !character.is_ascii()
}

/// A name from a request, truncated for a message.
pub(crate) fn shown(name: &str) -> &str {
    const SHOWN_BYTES: usize = 40;
    &name[..name.floor_char_boundary(SHOWN_BYTES)]
}

/// Normalize every line end to one line feed, as XML requires.
fn lines(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\r') {
        return Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"));
    }
    text
}

fn declared_encoding(body: &[u8]) -> Option<String> {
    /// A declaration is some 60 bytes; it is not searched beyond this.
    const DECLARATION_BYTES: usize = 256;
    let head = body.get(..body.len().min(DECLARATION_BYTES))?.strip_prefix(b"<?xml")?;
    let head = String::from_utf8_lossy(head);
    let declaration = &head[..head.find("?>")?];
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Some(value[1..].split(quote).next()?.to_owned())
}

fn utf8(body: &[u8]) -> Result<Cow<'_, str>, Fault> {
    std::str::from_utf8(body).map(Cow::Borrowed).map_err(|error| {
        let at = error.valid_up_to();
        Fault::new(
            fault::CHARACTER,
            format!("expected UTF-8, found something else at byte {at}; declare ISO-8859-1 if it is that"),
        )
    })
}

fn is_any(name: &str, known: &[&str]) -> bool {
    known.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn unsupported(found: &str) -> Fault {
    Fault::new(fault::ENCODING, format!("expected UTF-8, ISO-8859-1 or US-ASCII, found {found}; send UTF-8"))
}

fn forbidden_character(character: char) -> Fault {
    let code = u32::from(character);
    Fault::new(
        fault::CHARACTER,
        format!("expected characters of XML 1.0, found U+{code:04X}; send such text as <base64>"),
    )
}

fn complex(expected: String) -> Fault {
    Fault::new(fault::TOO_COMPLEX, format!("{expected}, found more; send several requests"))
}
