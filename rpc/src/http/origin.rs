//! Origin check: refuses requests that a web browser makes for a page of another site.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! A daemon on loopback trusts every program on the host, but a browser there runs pages of any site. A
//! cross-site page is visible in `Origin` or `Sec-Fetch-Site`; a page whose own name resolves to 127.0.0.1
//! (DNS rebinding) sends that name in `Host`.
//! Not here: authentication.

use crate::fault::Fault;
use std::net::IpAddr;
use wire::fault::FORBIDDEN;

/// Header fields by which a browser names the page that makes a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BrowserHeaders<'a> {
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) fetch_site: Option<&'a str>,
}

/// Host names that a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Only those of loopback, where it is bound.
    Loopback,
    /// Any: it is bound to an address with names that it does not know.
    Any,
}

/// Refuse requests of pages of other sites.
pub(crate) fn check(headers: BrowserHeaders<'_>, names: Names) -> Result<(), Fault> {
    if let Some(host) = headers.host
        && names == Names::Loopback
        && !is_loopback_name(name_of(host))
    {
        let message = "expected a Host of this machine (localhost, 127.0.0.1, [::1]), found another; this daemon listens on loopback only";
        return Err(Fault::new(FORBIDDEN, message));
    }
    let same_origin = |origin: &str| {
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.zip(headers.host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host))
    };
    let from_elsewhere = headers.origin.is_some_and(|origin| !same_origin(origin))
        || headers.fetch_site.is_some_and(|site| site != "same-origin" && site != "none");
    if from_elsewhere {
        let message = "expected no request of a web page from elsewhere, found one; ask from a program";
        return Err(Fault::new(FORBIDDEN, message));
    }
    Ok(())
}

/// The name in `name:port`, `[address]:port`, `name`.
fn name_of(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn is_loopback_name(name: &str) -> bool {
    let lower = name.trim_end_matches('.').to_ascii_lowercase();
    lower == "localhost"
        || lower.ends_with(".localhost")
        || lower.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(headers: BrowserHeaders<'_>, names: Names) -> bool {
        check(headers, names).is_ok()
    }

    #[test]
    fn a_loopback_server_answers_for_loopback_names() {
        let check = |host, expected| {
            let headers = BrowserHeaders { host: Some(host), ..BrowserHeaders::default() };
            assert_eq!(admitted(headers, Names::Loopback), expected, "{host}");
            assert!(admitted(headers, Names::Any), "{host}");
        };
        for host in [
            "localhost",
            "LOCALHOST:7007",
            "127.0.0.1:7007",
            "127.1.2.3",
            "[::1]:7007",
            "[::1]",
            "x.localhost:1",
            "localhost.",
        ] {
            check(host, true);
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:7007",
            "10.0.0.1",
            "[2001:db8::1]",
            "",
            "[::1",
        ] {
            check(host, false);
        }
        assert!(
            admitted(BrowserHeaders::default(), Names::Loopback),
            "HTTP/1.0 has no Host, and no browser speaks it"
        );
    }

    #[test]
    fn pages_from_elsewhere_are_refused() {
        let check = |origin, fetch_site, expected| {
            let headers = BrowserHeaders { host: Some("localhost:7007"), origin, fetch_site };
            assert_eq!(admitted(headers, Names::Loopback), expected, "{headers:?}");
        };
        check(None, None, true);
        check(Some("http://localhost:7007"), Some("same-origin"), true);
        check(None, Some("none"), true);
        check(Some("http://localhost:3000"), None, false);
        check(Some("https://evil.example"), None, false);
        check(Some("null"), None, false);
        check(Some(""), None, false);
        check(None, Some("cross-site"), false);
        check(None, Some("same-site"), false);
    }
}
