//! Hostile bodies against a running server: each gets a well-formed fault or HTTP error with a known code,
//! none causes a panic, and a valid call is answered after every batch.
//!
//! The bodies are hand-written families and mutations of valid requests with fixed seeds, so every run sends
//! the same ones.

#![allow(clippy::unwrap_used)] // a failure here is a failed test

use crate::served::{Served, call, echo};
use rpc::codec::xmlrpc::parse_call;
use rpc::limits::Limits;
use wire::fault;

/// A small generator (xorshift), so that a seed always gives the same bodies.
struct Random(u64);

impl Random {
    fn of(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap()
    }
}

fn valid() -> Vec<String> {
    vec![
        call("test.echo", ""),
        echo("<value><int>5</int></value>"),
        echo("<value><string>J\u{fc}rgen &amp; &#x3c;</string></value>"),
        echo("<value><array><data><value><i8>1</i8></value><value><nil/></value></data></array></value>"),
        echo(
            "<value><struct><member><name>a</name><value><base64>AAEC</base64></value></member></struct></value>",
        ),
        echo("<value><double>1.5</double></value>").replace("UTF-8", "utf-8"),
        call(
            "system.multicall",
            "<param><value><array><data><value><struct><member><name>methodName</name><value>test.echo</value></member><member><name>params</name><value><array><data/></array></value></member></struct></value></data></array></value></param>",
        ),
        echo("<value><dateTime.iso8601>20261121T03:00:00</dateTime.iso8601></value>"),
    ]
}

/// Mutate a valid body one to three times.
fn mutate(random: &mut Random, valid: &[String]) -> Vec<u8> {
    const PIECES: &[&str] = &[
        "<value>",
        "</value>",
        "<struct>",
        "</struct>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "&",
        "&#0;",
        "&#xFFFF;",
        "&lol;",
        "<!DOCTYPE x [<!ENTITY a 'b'>]>",
        "<?pi?>",
        "\0",
        "\u{fffe}",
        "<",
        ">",
        "\"",
        "<int>",
        "</int>",
        "<member><name>value</name><value>2</value></member>",
        "99999999999999999999",
        "<x a='1' a='2'/>",
        "</methodCall>",
        "<params>",
        "<nil/>",
        " ",
        "\u{feff}",
        "1e999",
        "<?xml version='1.0'?>",
    ];
    let mut body = valid[random.below(valid.len())].clone().into_bytes();
    for _ in 0..=random.below(3) {
        let at = random.below(body.len() + 1);
        match random.below(6) {
            0 => body.truncate(at),
            1 if at < body.len() => body[at] = u8::try_from(random.below(256)).unwrap(),
            2 => drop(body.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
            3 if at < body.len() => drop(body.drain(at..(at + 1 + random.below(20)).min(body.len()))),
            4 => {
                let from = random.below(body.len() + 1);
                let piece = body[from..(from + random.below(60)).min(body.len())].to_vec();
                drop(body.splice(at..at, piece));
            }
            _ => drop(body.splice(at..at, [u8::try_from(random.below(256)).unwrap()])),
        }
    }
    body
}

fn in_value(inner: &str) -> String {
    echo(&format!("<value>{inner}</value>"))
}

/// Bodies, each with the expected code.
type Bodies = Vec<(Vec<u8>, i32)>;

fn add(bodies: &mut Bodies, body: String, code: i32) {
    bodies.push((body.into_bytes(), code));
}

fn plain() -> String {
    call("test.echo", "").replace("<?xml version=\"1.0\"?>", "")
}

/// Document types, and entities that are not XML's own.
fn declarations_and_entities(bodies: &mut Bodies) {
    let plain = plain();
    for dtd in [
        "<!DOCTYPE methodCall>",
        "<!DOCTYPE methodCall SYSTEM \"http://127.0.0.1/x.dtd\">",
        "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>",
        "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]>",
        "<!DOCTYPE x [<!ENTITY % p SYSTEM \"http://127.0.0.1/p\">%p;]>",
        "<!doctype x>",
    ] {
        add(bodies, format!("<?xml version=\"1.0\"?>{dtd}{plain}"), fault::FORBIDDEN_XML);
    }
    for entity in ["&lol9;", "&a;", "&nbsp;", "&xxe;", "&AMP;"] {
        add(bodies, in_value(entity), fault::FORBIDDEN_XML);
        add(bodies, call(entity, ""), fault::FORBIDDEN_XML);
    }
}

/// Too deep, too many, too large.
fn sizes(bodies: &mut Bodies) {
    for depth in [12, 20, 40, 100, 1_000, 20_000] {
        let (open, close) = ("<value><array><data>".repeat(depth), "</data></array></value>".repeat(depth));
        add(bodies, echo(&format!("{open}{close}")), fault::TOO_COMPLEX);
        add(bodies, echo(&open), fault::TOO_COMPLEX);
        add(bodies, "<a>".repeat(depth + 30), fault::INVALID_REQUEST);
    }
    for count in [5_000, 9_000, 50_000] {
        add(
            bodies,
            in_value(&format!("<array><data>{}</data></array>", "<value>x</value>".repeat(count))),
            fault::TOO_COMPLEX,
        );
        add(bodies, in_value(&"<!-- x -->".repeat(count * 2)), fault::TOO_COMPLEX);
    }
    for count in [65, 1_000, 10_000] {
        let attributes: String = (0..count).map(|at| format!(" a{at}=\"\"")).collect();
        add(bodies, in_value(&format!("<string{attributes}></string>")), fault::TOO_COMPLEX);
        add(bodies, in_value(&"<i4 a='1'/>".repeat(count)), fault::INVALID_REQUEST);
    }
    for size in [1 << 20, (1 << 20) + 1, 3 << 20] {
        add(bodies, in_value(&"x".repeat(size)), fault::TOO_LARGE);
    }
}

/// Texts that do not match their element's type.
fn scalars(bodies: &mut Bodies) {
    for (element, texts) in [
        (
            "int",
            &[
                "",
                "x",
                "1.5",
                "0x1",
                "2147483648",
                "-2147483649",
                "1 2",
                "\u{661}",
                "1_0",
                "99999999999999999999999",
            ][..],
        ),
        ("i8", &["", "9223372036854775808", "-9223372036854775809", "1e3", "NaN"][..]),
        ("boolean", &["", "2", "true", "yes", "-1", "01"][..]),
        ("double", &["", "nan", "inf", "-inf", "1e999", "1,5", "--1", "infinity"][..]),
        ("base64", &["#", "AAA", "A===", "AA=A", "\u{fc}", "AAEC!"][..]),
        (
            "dateTime.iso8601",
            &["", "now", "2026", "20261321T00:00:00", "20261121T25:00:00", "20261121 03:00:00"][..],
        ),
        ("nil", &["x"][..]),
        ("bogus", &["", "1"][..]),
    ] {
        for text in texts {
            add(bodies, in_value(&format!("<{element}>{text}</{element}>")), fault::INVALID_REQUEST);
        }
    }
}

/// Duplicate members, and unknown parameters.
fn parameters(bodies: &mut Bodies) {
    let member = |name: &str| format!("<member><name>{name}</name><value>1</value></member>");
    for name in ["a", "", "J\u{fc}rgen", "a b"] {
        add(
            bodies,
            in_value(&format!("<struct>{}{}</struct>", member(name), member(name))),
            fault::INVALID_REQUEST,
        );
    }
    let twice =
        format!("<param><value><struct>{}{}</struct></value></param>", member("limit"), member("limit"));
    add(bodies, call("test.echo", &twice), fault::INVALID_REQUEST);
    for name in ["bogus", "Value", "value ", ""] {
        let params = format!("<param><value><struct>{}</struct></value></param>", member(name));
        add(bodies, call("test.echo", &params), fault::INVALID_PARAMS);
    }
    let limit = |value: &str| {
        let member = format!("<member><name>limit</name><value>{value}</value></member>");
        call("test.echo", &format!("<param><value><struct>{member}</struct></value></param>"))
    };
    for value in [
        "<int>0</int>",
        "<int>10001</int>",
        "<i8>-9223372036854775808</i8>",
        "x",
        "<boolean>1</boolean>",
        "<double>1.5</double>",
        "<array><data/></array>",
        "<struct/>",
        "<base64/>",
    ] {
        add(bodies, limit(value), fault::INVALID_PARAMS);
    }
    add(bodies, call("test.echo", "<param><value><int>1</int></value></param>"), fault::INVALID_PARAMS);
    add(
        bodies,
        call("test.echo", "<param><value><struct/></value></param><param><value/></param>"),
        fault::INVALID_PARAMS,
    );
    for name in ["nothing", "test.ech", "test.echo.x", "../../etc/passwd", "system.shutdown"] {
        add(bodies, call(name, ""), fault::METHOD_NOT_FOUND);
    }
    add(bodies, call(&"m".repeat(100_000), ""), fault::METHOD_NOT_FOUND);
}

/// Documents that are not a call.
fn structure(bodies: &mut Bodies) {
    for structure in [
        "hello",
        "<a/>",
        "<methodCall/>",
        "<methodCall></methodCall>",
        "<methodCall><methodName/></methodCall>",
        "<methodCall><params/></methodCall>",
        "<methodResponse/>",
        "<METHODCALL/>",
        "{\"method\":\"x\"}",
        "<methodCall><methodName>a</methodName><methodName>b</methodName></methodCall>",
        "<methodCall><methodName>a</methodName><params><value/></params></methodCall>",
        "<methodCall><methodName>a</methodName><params><param/></params></methodCall>",
        "<methodCall><methodName>a</methodName><params/><params/></methodCall>",
        "<methodCall><methodName>a<b/></methodName></methodCall>",
    ] {
        add(bodies, structure.to_owned(), fault::INVALID_REQUEST);
    }
    for text in [
        "",
        " \r\n",
        "<",
        "<>",
        "<methodCall",
        "<methodCall>",
        "<methodCall><methodName>a</methodCall>",
        "<!--",
        "<a b=c/>",
        "<methodCall><methodName>a</methodName></methodCall><methodCall/>",
        "</methodCall>",
    ] {
        add(bodies, text.to_owned(), fault::PARSE);
    }
}

/// Characters that XML forbids, and wrong encodings.
fn characters(bodies: &mut Bodies) {
    let plain = plain();
    for character in ["\0", "\u{1}", "\u{b}", "\u{1f}", "\u{fffe}", "\u{ffff}", "&#1;", "&#xFFFE;", "&#31;"] {
        add(bodies, in_value(character), fault::CHARACTER);
    }
    for encoding in ["UTF-16", "UTF-7", "EBCDIC-CP-US", "Shift_JIS", "", "x\u{fc}"] {
        add(bodies, format!("<?xml version=\"1.0\" encoding=\"{encoding}\"?>{plain}"), fault::ENCODING);
    }
}

/// Bytes that are not UTF-8.
fn encodings(bodies: &mut Bodies) {
    let plain = plain();
    let bytes: [&[u8]; 8] = [
        b"\xFF",
        b"\xC0\x80",
        b"\xED\xA0\x80",
        b"\xF4\x90\x80\x80",
        b"\xC3",
        b"\xE2\x82",
        b"\x80",
        b"\xF8\x88\x80\x80\x80",
    ];
    for bad in bytes {
        let whole = in_value("@");
        let (before, after) = whole.split_once('@').unwrap();
        bodies.push(([before.as_bytes(), bad, after.as_bytes()].concat(), fault::CHARACTER));
    }
    let wide = |order: fn(u16) -> [u8; 2]| plain.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    bodies.push((wide(u16::to_be_bytes), fault::ENCODING));
    bodies.push((wide(u16::to_le_bytes), fault::ENCODING));
}

/// Hand-written families: each body with the expected code.
fn families() -> Bodies {
    let mut bodies = Bodies::new();
    for family in [declarations_and_entities, sizes, scalars, parameters, structure, characters, encodings] {
        family(&mut bodies);
    }
    bodies
}

#[test]
fn bodies_made_by_hand_get_their_code() {
    let served = Served::start(Limits::default());
    let families = families();
    assert!(families.len() >= 150, "only {} bodies", families.len());
    for (body, code) in &families {
        let answer = served.post("/RPC2", body);
        let start = String::from_utf8_lossy(&body[..body.len().min(400)]);
        assert_eq!((answer.status, answer.fault_code()), (200, Some(*code)), "{start}: {answer:?}");
        assert!(answer.body.len() < 800, "a fault repeats little of its request: {answer:?}");
    }
    served.still_answers();
    assert_eq!(served.counted().panics_total, 0);
}

#[test]
fn every_prefix_of_a_good_body_is_refused() {
    let served = Served::start(Limits::default());
    let body = echo("<value><int>5</int></value>");
    assert_eq!(served.post("/RPC2", body.as_bytes()).fault_code(), None, "the control passes");
    for length in 0..body.len() {
        let answer = served.post("/RPC2", &body.as_bytes()[..length]);
        let code = answer.fault_code();
        assert!(matches!(code, Some(fault::PARSE | fault::INVALID_REQUEST)), "{length}: {answer:?}");
    }
    served.still_answers();
}

#[test]
fn two_thousand_changed_bodies_are_refused_or_answered() {
    const REFUSED_AT_LEAST: usize = 2_000;
    const BATCH: usize = 100;
    let served = Served::start(Limits::default());
    let valid = valid();
    for body in &valid {
        assert_eq!(served.post("/RPC2", body.as_bytes()).fault_code(), None, "the control passes: {body}");
    }
    let (mut refused, mut answered, mut seed) = (0, 0, 0);
    while refused < REFUSED_AT_LEAST {
        seed += 1;
        assert!(seed < 20_000, "{refused} refused, {answered} answered");
        let body = mutate(&mut Random::of(seed), &valid);
        let answer = served.post("/RPC2", &body);
        let text = String::from_utf8_lossy(&body);
        assert_eq!(answer.status, 200, "seed {seed}: {text}: {answer:?}");
        if let Some(code) = answer.fault_code() {
            let known = fault::CODES.iter().any(|(known, ..)| *known == code);
            assert!(known && code != fault::INTERNAL, "seed {seed}: {text}: {answer:?}");
            refused += 1;
        } else {
            let is_answer = answer.body.contains("<methodResponse><params>");
            assert!(is_answer, "seed {seed}: {text}: {answer:?}");
            answered += 1;
        }
        if seed % BATCH as u64 == 0 {
            served.still_answers();
        }
    }
    assert!(answered > 0, "some changes leave a body valid; if none did, too much is refused");
    assert_eq!(served.counted().panics_total, 0);
}

#[test]
fn changed_json_is_refused_or_answered() {
    let served = Served::start(Limits::default());
    let valid: Vec<String> =
        [r#"{"value":[1,{"a":"x"}],"limit":5}"#, r#"{"value":null}"#, "{}", r#"{"value":"\u00fc"}"#]
            .iter()
            .map(|body| (*body).to_owned())
            .collect();
    let mut refused = 0;
    for seed in 1..1_000 {
        let body = mutate(&mut Random::of(seed), &valid);
        let answer = served.post("/api/v1/test.echo", &body);
        match answer.fault_code() {
            Some(code) => {
                let (_, _, status, _) = fault::CODES.iter().find(|(known, ..)| *known == code).unwrap();
                assert_eq!(answer.status, *status, "seed {seed}: {answer:?}");
                refused += 1;
            }
            None => assert_eq!(answer.status, 200, "seed {seed}: {answer:?}"),
        }
    }
    assert!(refused > 300, "{refused}");
    served.still_answers();
}

#[test]
fn the_reader_never_panics_on_random_bytes() {
    const ALPHABET: &[u8] = b"<>/&;#x?!-[]= '\"methodCallNamevalue\0\xFF\r\n";
    let limits = Limits::default();
    let mut refused = 0;
    for seed in 1..20_000 {
        let mut random = Random::of(seed);
        let length = random.below(200);
        let body: Vec<u8> = (0..length).map(|_| ALPHABET[random.below(ALPHABET.len())]).collect();
        refused += usize::from(parse_call(&body, &limits).is_err());
    }
    assert_eq!(refused, 19_999);
}
