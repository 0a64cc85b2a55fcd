//! Hints for faults: another daemon to query if one lacks the method; the parameter that is missing.
//!
//! Pure: they are made from the fault and the kind of daemon alone.

use super::via::Via;
use crate::hop::NO_DOMAIN;
use ::client::Error;
use wire::fault;

/// Hint for a daemon of this kind (`daemon.info`) that lacks `method`.
pub(super) fn of_another_daemon(method: &str, kind: &str) -> Option<String> {
    let part = method.split('.').next().unwrap_or_default();
    match (kind, part) {
        ("directory", "domain" | "sensor") => Some(format!(
            "this daemon is a directory, and {part}.* methods are a sensor's: `visperf resolve DOMAIN` shows where \
             one answers, and --connect HOST:PORT asks it"
        )),
        ("sensor", "directory") => Some(
            "this daemon is a sensor without a directory; ask a directory (`visperf directory`, `visperf up`) with \
             --connect HOST:PORT"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Hint for a daemon's fault message.
pub(super) fn of_words(message: &str) -> Option<&'static str> {
    message.starts_with(NO_DOMAIN).then_some("name one with --domain DOMAIN; `visperf domains` lists them")
}

/// The error of a call through a proxy, with a hint if the login was refused.
pub(super) fn of_login(error: Error, via: &Via) -> Error {
    if let Error::Fault { code, message } = &error
        && via.logs_in()
        && *code == i64::from(fault::FORBIDDEN)
    {
        return refused(message, via.is_legacy());
    }
    error
}

/// The fault for a login that the proxy refused with this message.
pub(super) fn refused(words: &str, is_legacy: bool) -> Error {
    let hint = match is_legacy && words.contains("is wrong") {
        true => {
            "; --legacy logs in by MD5: an account that was not added with `visperf account add --legacy` is known by SHA-256 \
             alone, so leave --legacy (VISPERF_LEGACY) out for it"
        }
        false => "",
    };
    Error::Fault { code: fault::FORBIDDEN.into(), message: format!("{words}{hint}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_domain_the_hint_names_the_option() {
        let words = format!("{NO_DOMAIN}: expected domain, found none");
        assert!(
            of_words(&words)
                .is_some_and(|hint| hint.contains("--domain") && hint.contains("visperf domains"))
        );
        assert_eq!(of_words("no host n1 in CERN"), None);
    }

    #[test]
    fn a_failed_md5_login_gets_the_hint_what_to_leave_out() {
        let message = |words: &str, is_legacy| refused(words, is_legacy).to_string();
        assert!(message("name or secret is wrong", true).contains("leave --legacy"));
        assert!(!message("name or secret is wrong", false).contains("legacy"));
        assert!(!message("too many failures", true).contains("leave"));
    }

    #[test]
    fn the_other_daemon_is_named() {
        let check = |kind: &str, method: &str, expected: Option<&str>| {
            let hint = of_another_daemon(method, kind);
            match (&hint, expected) {
                (Some(hint), Some(part)) => assert!(hint.contains(part), "{hint}"),
                (None, None) => {}
                _ => panic!("{kind} {method}: {hint:?}"),
            }
        };
        check("directory", "domain.hosts", Some("visperf resolve DOMAIN"));
        check("directory", "sensor.files", Some("sensor.* methods are a sensor's"));
        check("sensor", "directory.domains", Some("ask a directory"));
        check("up", "domain.nothing", None);
        check("directory", "no.such", None);
    }
}
