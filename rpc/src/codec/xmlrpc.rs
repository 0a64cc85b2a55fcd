//! XML-RPC parser: the bytes of a request to a call.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! ```xml
//! <methodCall><methodName>sensor.events</methodName><params><param><value><struct>
//!   <member><name>limit</name><value><int>10</int></value></member>
//! </struct></value></param></params></methodCall>
//! ```
//! Parsing is strict: one root, every element where it belongs, no duplicate member, no text between
//! elements.
//! Not here: decoding and limits (`xml_tokens`), scalar texts (`xml_scalars`), answers (`xml_writer`), HTTP
//! (`http::router`).

use crate::codec::value::{Name, Value};
use crate::codec::xml_scalars;
use crate::codec::xml_tokens::{Token, Tokens, decode, shown};
use crate::fault::Fault;
use crate::limits::Limits;

/// A call as requested.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name of the method.
    pub name: String,
    /// Parameters in order; the methods of visperf take none or one.
    pub params: Vec<Value>,
}

/// Parse a request.
///
/// # Errors
/// A fault that says what was expected and found, and near which byte. It repeats no more of the request than
/// a tag name.
pub fn parse_call(body: &[u8], limits: &Limits) -> Result<Call, Fault> {
    if body.len() > limits.body_bytes {
        return Err(too_large(limits.body_bytes));
    }
    let document = decode(body)?;
    if document.trim_ascii().is_empty() {
        return Err(Fault::parse("expected an XML-RPC <methodCall>, found an empty body"));
    }
    let mut reading = Reading { tokens: Tokens::new(&document, limits) };
    let call = reading.call()?;
    reading.end()?;
    Ok(call)
}

/// Fault of a request that exceeds a limit.
pub(crate) fn too_large(at_most: usize) -> Fault {
    Fault::new(wire::fault::TOO_LARGE, format!("expected a body of at most {at_most} bytes, found more"))
}

struct Reading<'a> {
    tokens: Tokens<'a>,
}

impl<'a> Reading<'a> {
    fn call(&mut self) -> Result<Call, Fault> {
        self.open("methodCall")?;
        self.open("methodName")?;
        let name = self.text("methodName")?.trim().to_owned();
        if name.is_empty() {
            return Err(self.tokens.unexpected("the name of a method", "none"));
        }
        let mut params = Vec::new();
        if self.opens("params")? {
            while self.opens("param")? {
                self.open("value")?;
                params.push(self.value()?);
                self.close("param")?;
            }
            self.close("methodCall")?;
        }
        Ok(Call { name, params })
    }

    fn end(&mut self) -> Result<(), Fault> {
        match self.element("the end")? {
            Token::End => Ok(()),
            Token::Open(_) | Token::Close | Token::Text(_) => {
                Err(self.tokens.unexpected("the end after </methodCall>", "more"))
            }
        }
    }

    /// Parse the content of `<value>` and its end tag.
    fn value(&mut self) -> Result<Value, Fault> {
        let mut text = String::new();
        loop {
            match self.tokens.next()? {
                Token::Text(more) => text.push_str(&more),
                Token::Close => return Ok(Value::Text(text)),
                Token::Open(_) if !text.trim_ascii().is_empty() => {
                    return Err(self.tokens.unexpected("text or one element in <value>", "both"));
                }
                Token::Open(tag) => {
                    let value = self.typed(&tag)?;
                    self.close("value")?;
                    return Ok(value);
                }
                Token::End => return Err(self.tokens.unexpected("</value>", "the end")),
            }
        }
    }

    fn typed(&mut self, tag: &str) -> Result<Value, Fault> {
        // Apache's extensions are the same types with a prefix.
        let element = tag.strip_prefix("ex:").unwrap_or(tag);
        match element {
            "string" => Ok(Value::Text(self.text("string")?)),
            "struct" => self.structure(),
            "array" => self.array(),
            "nil" => self.text("nil").and_then(|text| match text.trim_ascii() {
                "" => Ok(Value::Nil),
                _ => Err(self.tokens.unexpected("<nil/>", "text in it")),
            }),
            _ => {
                let Some(expected) = xml_scalars::expected(element) else {
                    return Err(self.tokens.unexpected("an XML-RPC type", &format!("<{}>", shown(tag))));
                };
                let text = self.text(element)?;
                xml_scalars::read(element, &text).ok_or_else(|| {
                    self.tokens.unexpected(&format!("{expected} in <{element}>"), "something else")
                })
            }
        }
    }

    fn array(&mut self) -> Result<Value, Fault> {
        let mut values = Vec::new();
        self.open("data")?;
        while self.opens("value")? {
            values.push(self.value()?);
        }
        self.close("array")?;
        Ok(Value::Array(values))
    }

    fn structure(&mut self) -> Result<Value, Fault> {
        let mut members: Vec<(Name, Value)> = Vec::new();
        while self.opens("member")? {
            self.open("name")?;
            let name = self.text("name")?;
            self.open("value")?;
            members.push((Name::Owned(name), self.value()?));
            self.close("member")?;
        }
        match duplicate(&members) {
            Some(name) => {
                let found = format!("{} twice", Value::from(name).shown());
                Err(self.tokens.unexpected("each member once", &found))
            }
            None => Ok(Value::Struct(members)),
        }
    }

    /// The next token, skipping white space between elements.
    fn element(&mut self, expected: &str) -> Result<Token<'a>, Fault> {
        loop {
            match self.tokens.next()? {
                Token::Text(text) if text.trim_ascii().is_empty() => {}
                Token::Text(_) => return Err(self.tokens.unexpected(expected, "text")),
                token @ (Token::Open(_) | Token::Close | Token::End) => return Ok(token),
            }
        }
    }

    fn open(&mut self, tag: &str) -> Result<(), Fault> {
        if self.opens(tag)? {
            return Ok(());
        }
        Err(self.tokens.unexpected(&format!("<{tag}>"), "none"))
    }

    /// Whether `tag` starts here; if not, the element around it has just ended.
    fn opens(&mut self, tag: &str) -> Result<bool, Fault> {
        match self.element(&format!("<{tag}>"))? {
            Token::Open(found) if found == tag => Ok(true),
            Token::Open(found) => {
                Err(self.tokens.unexpected(&format!("<{tag}>"), &format!("<{}>", shown(&found))))
            }
            Token::Close => Ok(false),
            Token::Text(_) | Token::End => Err(self.tokens.unexpected(&format!("<{tag}>"), "the end")),
        }
    }

    fn close(&mut self, tag: &str) -> Result<(), Fault> {
        match self.element(&format!("</{tag}>"))? {
            Token::Close => Ok(()),
            Token::Open(found) => {
                Err(self.tokens.unexpected(&format!("</{tag}>"), &format!("<{}>", shown(&found))))
            }
            Token::Text(_) | Token::End => Err(self.tokens.unexpected(&format!("</{tag}>"), "the end")),
        }
    }

    /// Read the text up to the end tag of `tag`.
    fn text(&mut self, tag: &str) -> Result<String, Fault> {
        let mut text = String::new();
        loop {
            match self.tokens.next()? {
                Token::Text(more) if text.is_empty() => text = more.into_owned(),
                Token::Text(more) => text.push_str(&more),
                Token::Close => return Ok(text),
                Token::Open(found) => {
                    let found = format!("<{}>", shown(&found));
                    return Err(self.tokens.unexpected(&format!("text in <{tag}>"), &found));
                }
                Token::End => return Err(self.tokens.unexpected(&format!("</{tag}>"), "the end")),
            }
        }
    }
}

/// A name that two members share.
pub(crate) fn duplicate(members: &[(Name, Value)]) -> Option<&str> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::xml_writer::write_value;
    use wire::fault;

    fn call(inner: &str) -> Result<Call, Fault> {
        let text =
            format!("<?xml version='1.0'?>\n<methodCall><methodName>a.b</methodName>{inner}</methodCall>\n");
        parse_call(text.as_bytes(), &Limits::default())
    }

    fn value(inner: &str) -> Result<Value, Fault> {
        call(&format!("<params><param>{inner}</param></params>")).map(|call| call.params[0].clone())
    }

    #[test]
    fn values_are_read_exactly() {
        let check = |xml: &str, expected: Value| assert_eq!(value(xml), Ok(expected), "{xml}");
        check("<value>  a  </value>", "  a  ".into());
        check("<value/>", "".into());
        check("<value><string/></value>", "".into());
        check(
            "<value>\n <string> a &amp; &#x42;<![CDATA[<c>]]><!-- no --> </string>\n</value>",
            " a & B<c> ".into(),
        );
        check("<value><string>a\r\nb&#13;</string></value>", "a\nb\r".into());
        check("<value><i8> 5 </i8></value>", 5.into());
        check("<value><ex:nil xmlns:ex='x'/></value>", Value::Nil);
        check("<value><array><data/></array></value>", Value::Array(vec![]));
        check("<value><struct/></value>", Value::Struct(vec![]));
        check(
            "<value><struct><member> <name>n</name><value><int>1</int></value></member></struct></value>",
            Value::object([("n", 1)]),
        );
        assert_eq!(call("").unwrap(), Call { name: "a.b".into(), params: vec![] });
        assert_eq!(call("<params/>").unwrap().params, vec![]);
    }

    #[test]
    fn what_is_no_call_is_refused_with_its_code() {
        let check = |xml: &str, code: i32| match parse_call(xml.as_bytes(), &Limits::default()) {
            Err(fault) => assert_eq!(fault.code, code, "{xml}: {fault}"),
            Ok(call) => panic!("{xml} was read as {call:?}"),
        };
        let in_value = |inner: &str, code: i32| {
            let before = "<methodCall><methodName>m</methodName><params><param><value>";
            check(&format!("{before}{inner}</value></param></params></methodCall>"), code);
        };
        check("", fault::PARSE);
        check("hello", fault::INVALID_REQUEST);
        check("<methodCall>", fault::PARSE);
        check("<methodCall/>", fault::INVALID_REQUEST);
        check("<wrong><methodName>m</methodName></wrong>", fault::INVALID_REQUEST);
        check("<methodCall><methodName>m</methodName></methodCall>tail", fault::INVALID_REQUEST);
        check("<methodCall><methodName>m</methodName></methodCall><methodCall/>", fault::PARSE);
        check("<methodCall><methodName>m</methodName><bogus/></methodCall>", fault::INVALID_REQUEST);
        check("<methodCall><methodName>m</methodCall></methodName>", fault::PARSE);
        check("<!DOCTYPE x><methodCall><methodName>m</methodName></methodCall>", fault::FORBIDDEN_XML);
        check("<?php?><methodCall><methodName>m</methodName></methodCall>", fault::FORBIDDEN_XML);
        check("<?xml version='1.0' encoding='UTF-7'?><methodCall/>", fault::ENCODING);
        check("<methodCall><methodName>\0</methodName></methodCall>", fault::CHARACTER);
        in_value("&foo;", fault::FORBIDDEN_XML);
        in_value("&#0;", fault::PARSE);
        in_value("&#1;", fault::CHARACTER);
        in_value("&#xD800;", fault::PARSE);
        in_value("<int>1</int><int>1</int>", fault::INVALID_REQUEST);
        in_value("junk<int>1</int>", fault::INVALID_REQUEST);
        in_value("<int>1</int>junk", fault::INVALID_REQUEST);
        in_value("<bogus/>", fault::INVALID_REQUEST);
        in_value("<double>nan</double>", fault::INVALID_REQUEST);
        in_value("<string a='1' a='2'>x</string>", fault::PARSE);
        in_value("<struct><bogus/></struct>", fault::INVALID_REQUEST);
        in_value("<array><data><value/>junk</data></array>", fault::INVALID_REQUEST);
        let member = "<member><name>a</name><value>1</value></member>";
        in_value(&format!("<struct>{member}{member}</struct>"), fault::INVALID_REQUEST);
        let deep = "<value><array><data>".repeat(40);
        in_value(&format!("<array><data>{deep}"), fault::TOO_COMPLEX);
        in_value(&format!("<array><data>{}</data></array>", "<value/>".repeat(10_000)), fault::TOO_COMPLEX);
        let attributes: String = (0..65).map(|at| format!(" a{at}=''")).collect();
        in_value(&format!("<string{attributes}/>"), fault::TOO_COMPLEX);
        let large = "x".repeat(1 << 20);
        in_value(&large, fault::TOO_LARGE);
    }

    #[test]
    fn declared_encodings_are_followed() {
        let body = |encoding: &str, text: &[u8]| {
            let mut body = format!("<?xml version=\"1.0\" encoding=\"{encoding}\"?><methodCall><methodName>")
                .into_bytes();
            body.extend_from_slice(text);
            body.extend_from_slice(b"</methodName></methodCall>");
            parse_call(&body, &Limits::default()).map(|call| call.name).map_err(|fault| fault.code)
        };
        assert_eq!(body("ISO-8859-1", b"J\xFCrgen"), Ok("J\u{fc}rgen".into()));
        assert_eq!(body("utf-8", "J\u{fc}rgen".as_bytes()), Ok("J\u{fc}rgen".into()));
        assert_eq!(body("utf-8", b"J\xFCrgen"), Err(fault::CHARACTER));
        assert_eq!(body("US-ASCII", b"plain"), Ok("plain".into()));
        assert_eq!(body("us-ascii", b"J\xFCrgen"), Err(fault::CHARACTER));
        assert_eq!(body("EBCDIC", b"x"), Err(fault::ENCODING));
        let utf16: Vec<u8> = "<methodCall/>".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(parse_call(&utf16, &Limits::default()).unwrap_err().code, fault::ENCODING);
    }

    #[test]
    fn no_fault_repeats_the_request() {
        let secret = "s3cret".repeat(10_000);
        for xml in [
            format!("<methodCall><methodName>m</methodName>{secret}</methodCall>"),
            format!("<methodCall><methodName>m</methodName><{secret}/></methodCall>"),
            format!("<methodCall><methodName>m</methodName><a></{secret}></methodCall>"),
            format!("<methodCall><methodName>m</methodName><params><param><value><int>{secret}"),
        ] {
            let fault = parse_call(xml.as_bytes(), &Limits::default()).unwrap_err();
            assert!(fault.message.len() < 200, "{fault}");
        }
    }

    #[test]
    fn written_values_are_read_back() {
        let written = Value::object([
            ("nil", Value::Nil),
            ("flag", true.into()),
            ("small", (-5).into()),
            ("big", (1_i64 << 60).into()),
            ("time", 1_700_000_000.123_456.into()),
            ("text", "a<b>&\r\n\u{fffd}\u{10000}".into()),
            ("bytes", Value::Bytes(vec![0, 255])),
            ("array", Value::array(["", " "])),
        ]);
        let mut xml = String::new();
        write_value(&mut xml, &written);
        assert_eq!(value(&xml), Ok(written));
    }
}
