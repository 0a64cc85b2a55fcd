//! Header fields that are accepted, and header fields that are refused.

use super::*;
use proptest::prelude::*;

const CURL: &str = "Digest username=\"ana\", realm=\"visperf\", nonce=\"abc=\", uri=\"/d/UT-ICL/RPC2?a=b,c\", \
                    cnonce=\"Zg==\", nc=00000001, qop=auth, response=\"00ff\", algorithm=SHA-256";

#[test]
fn what_clients_send_is_read() {
    let read = Credentials::read(CURL).expect("readable").expect("digest");
    assert_eq!((read.username.as_str(), read.algorithm, read.count()), ("ana", Algorithm::Sha256, Ok(1)));
    assert_eq!(read.uri, "/d/UT-ICL/RPC2?a=b,c");
    assert_eq!(Credentials::read(&read.write()), Ok(Some(read)));
    // As Perl's LWP and Python's urllib write it.
    let perl = "Digest username=\"o\\\"x\", realm=\"r\", qop=auth, algorithm=\"MD5\", uri=\"/\", nonce=\"n\", \
                nc=0000000A, cnonce=\"6740\", response=\"AB\"";
    let read = Credentials::read(perl).expect("readable").expect("digest");
    assert_eq!((read.username.as_str(), read.algorithm, read.count()), ("o\"x", Algorithm::Md5, Ok(10)));
    assert_eq!(Credentials::read("Bearer abc"), Ok(None));
    assert_eq!(Credentials::read("Basic YTpi"), Ok(None));
    assert_eq!(Credentials::read(""), Ok(None));
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let check = |from: &str, to: &str, expected: Error| {
        let text = CURL.replace(from, to);
        assert_ne!(text, CURL, "{from} is not there");
        assert_eq!(Credentials::read(&text), Err(expected), "{text}");
    };
    check("nc=00000001", "nc=00000001, nc=00000002", Error::Twice("nc".into()));
    check("nc=00000001", "nc=1", Error::Value { expected: "nc of eight hexadecimal digits" });
    check("nc=00000001", "nc=+0000001", Error::Value { expected: "nc of eight hexadecimal digits" });
    check("qop=auth", "qop=auth-int", Error::Value { expected: "qop=auth" });
    check("qop=auth, ", "", Error::Missing("qop"));
    check("username=\"ana\", ", "", Error::Missing("username"));
    check("SHA-256", "SHA-512-256", Error::Value { expected: "algorithm=SHA-256 or algorithm=MD5" });
    check("\"ana\"", "\"ana", Error::Form);
    check("\"ana\"", "ana\"", Error::Form);
    check("\"ana\"", "\"a\u{7}\"", Error::Form);
    check("\"ana\",", "\"ana\" x,", Error::Form);
    check("\"ana\",", "\"ana\",,", Error::Form);
    check("SHA-256", "SHA-256,", Error::Form);
    check("ana", &"a".repeat(FIELD_LEN_MAX_BYTES), Error::TooLong);
    let many: String = (0..PARTS_MAX).map(|at| format!(", x{at}=y")).collect();
    assert_eq!(Credentials::read(&format!("{CURL}{many}")), Err(Error::TooLong));
    let hashed = format!("{CURL}, userhash=true");
    assert!(matches!(Credentials::read(&hashed), Err(Error::Value { .. })));
}

#[test]
fn a_challenge_is_read_as_it_is_written() {
    let challenge = Challenge {
        realm: "visperf".into(),
        nonce: "n\\\"".into(),
        algorithm: Algorithm::Sha256,
        is_stale: true,
    };
    assert_eq!(Challenge::read(&challenge.write()), Ok(Some(challenge)));
    let old = "Digest realm=\"r\", nonce=\"n\", qop=\"auth,auth-int\"";
    let read = Challenge::read(old).expect("readable").expect("digest");
    assert_eq!((read.algorithm, read.is_stale), (Algorithm::Md5, false));
    assert_eq!(
        Challenge::read("Digest realm=\"r\", nonce=\"n\""),
        Ok(None),
        "without qop it could be replayed"
    );
    assert_eq!(
        Challenge::read("Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-512-256"),
        Ok(None)
    );
    assert_eq!(Challenge::read("Basic realm=\"r\""), Ok(None));
    let info =
        Info { rspauth: "ab".into(), cnonce: "c".into(), nc: "00000001".into(), nextnonce: Some("m".into()) };
    assert_eq!(Info::read(&info.write()), Ok(info));
}

#[test]
fn a_name_with_what_no_line_holds_is_refused() {
    for odd in ['\u{2028}', '\u{2029}', '\u{61c}', '\u{7f}'] {
        let text = format!(
            "Digest username=\"a{odd}\", realm=\"visperf\", nonce=\"n\", uri=\"/RPC2\", response=\"00\", qop=auth, nc=00000001, \
             cnonce=\"c\""
        );
        assert_eq!(Credentials::read(&text), Err(Error::Form), "{odd:?}");
        assert!(Credentials::read(&text.replace(odd, "b")).is_ok_and(|read| read.is_some()), "{odd:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = Credentials::read(&format!("Digest {text}"));
        let _ = Challenge::read(&text);
        let _ = Info::read(&text);
    }

    // Line and paragraph separators are refused like control characters.
    #[test]
    fn what_was_written_is_read(name in "[^\\p{C}\\p{Zl}\\p{Zp}]{1,20}", nonce in "[!-~]{1,40}", count in 1_u32..) {
        let credentials = Credentials {
            username: name, realm: "visperf".into(), nonce, uri: "/RPC2".into(), response: "00".into(),
            algorithm: Algorithm::Md5, cnonce: "c".into(), nc: format!("{count:08x}"),
        };
        prop_assert_eq!(Credentials::read(&credentials.write()), Ok(Some(credentials.clone())));
        prop_assert_eq!(credentials.count(), Ok(count));
    }
}
