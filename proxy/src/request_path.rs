//! Parsing of a request path: the domain and the host that it names, and the rest.
//!
//! ```text
//! /d/DOMAIN/RPC2            XML-RPC of a domain: its representative answers
//! /d/DOMAIN/HOST/RPC2       XML-RPC of one of its hosts
//! /d/DOMAIN/api/v1/METHOD   the same by JSON
//! /RPC2, /api/v1/METHOD     the proxy itself, and any domain by the parameter `domain`
//! /md5…                     any of these, with only MD5 offered
//! ```
//! Pure. Rule: a domain or host is given by name, never by address; an invalid name makes the path invalid.
//! Not here: whether the domain exists, and which account may see it.

use wire::id::{DomainName, HostName};

/// Target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPath {
    /// Whether only MD5 is offered.
    pub is_md5: bool,
    /// Domain in the path.
    pub domain: Option<DomainName>,
    /// Host of that domain in the path.
    pub host: Option<HostName>,
    /// The path as a daemon serves it: `/RPC2`, `/api/v1/METHOD`.
    pub rest: String,
}

/// Parse a path; `None` if it is invalid.
#[must_use]
pub fn of(path: &str) -> Option<RequestPath> {
    let (is_md5, path) = match path.strip_prefix("/md5") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            (true, if rest.is_empty() { "/" } else { rest })
        }
        _ => (false, path),
    };
    let Some(named) = path.strip_prefix("/d/") else {
        return Some(RequestPath { is_md5, domain: None, host: None, rest: path.to_owned() });
    };
    let (domain, rest) = named.split_once('/').unwrap_or((named, ""));
    let domain = Some(DomainName::try_from(domain).ok()?);
    let is_interface = |rest: &str| matches!(rest.split('/').next(), Some("" | "RPC2" | "api"));
    if is_interface(rest) {
        return Some(RequestPath { is_md5, domain, host: None, rest: format!("/{rest}") });
    }
    let (host, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let host = Some(HostName::try_from(host).ok()?);
    is_interface(rest).then(|| RequestPath { is_md5, domain, host, rest: format!("/{rest}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_domain_and_a_host_or_neither() {
        let check = |path: &str, expected: Option<(&str, &str, &str)>| {
            let found = of(path).map(|place| {
                let domain = place.domain.map_or(String::new(), |name| name.to_string());
                let host = place.host.map_or(String::new(), |name| name.to_string());
                (domain, host, place.rest)
            });
            let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
            assert_eq!(found, expected, "{path}");
        };
        check("/", Some(("", "", "/")));
        check("/RPC2", Some(("", "", "/RPC2")));
        check("/d/UT-ICL/RPC2", Some(("UT-ICL", "", "/RPC2")));
        check("/d/UT-ICL", Some(("UT-ICL", "", "/")));
        check("/d/UT-ICL/api/v1/sensor.events", Some(("UT-ICL", "", "/api/v1/sensor.events")));
        check("/d/UT-ICL/wn01.icl/RPC2", Some(("UT-ICL", "wn01.icl", "/RPC2")));
        check("/d/UT-ICL/wn01/api/v1", Some(("UT-ICL", "wn01", "/api/v1")));
        check("/d/UT-ICL/wn01", Some(("UT-ICL", "wn01", "/")));
        check("/d//RPC2", None);
        check("/d/UT%2dICL/RPC2", None);
        check("/d/127.0.0.1:22/RPC2", None);
        check("/d/UT-ICL/a:b/RPC2", None);
        check("/d/UT-ICL/wn01/other", None);
        check("/d/UT-ICL/../RPC2", None);
    }

    #[test]
    fn md5_is_asked_for_by_the_path() {
        assert!(!of("/d/UT-ICL/RPC2").unwrap().is_md5 && !of("/md5x").unwrap().is_md5);
        let place = of("/md5/d/UT-ICL/RPC2").unwrap();
        assert!(place.is_md5 && place.rest == "/RPC2" && place.domain.is_some());
        assert_eq!(of("/md5").unwrap().rest, "/");
    }
}
