//! A bucket of an object store that speaks S3, by the usual variables of the environment.
//!
//! Rule: what cannot be right is refused before it is used, and named by its variable; keys and passwords are in no
//! message. Not here: what is stored there.

use crate::error::Error;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, RetryConfig};
use reqwest::Url;
use std::sync::Arc;
use std::time::Duration;

/// How long a request is repeated.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// The keys, both of them.
const KEYS: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

/// Variables that a platform sets where programs get their keys from it.
const OTHER_KEYS: [&str; 3] = [
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

/// Opens `BUCKET/PREFIX`, the `rest` of this name.
pub(crate) fn open(name: &str, rest: &str) -> Result<Arc<dyn ObjectStore>, Error> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if bucket.is_empty() || !bucket.chars().all(is_plain) {
        return Err(Error::Place { found: name.to_owned() });
    }
    let endpoint = check(&|name| std::env::var(name).ok())?;
    // Another part of the program may have chosen the same one before.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let store = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        // Only where the user's own endpoint has no TLS.
        .with_allow_http(endpoint.is_some_and(|endpoint| endpoint.scheme() == "http"))
        .with_retry(RetryConfig { max_retries: 5, retry_timeout: GIVE_UP_AFTER, ..RetryConfig::default() })
        .build()
        .map_err(|source| Error::Store { place: name.to_owned(), source })?;
    Ok(Arc::new(PrefixStore::new(store, Path::from(prefix))))
}

/// Checks the variables; returns the endpoint, if there is one.
fn check(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Url>, Error> {
    let wrong =
        |variable, expected, found: &str| Err(Error::Setting { variable, expected, found: found.to_owned() });
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if let Some(region) = variable("AWS_REGION")
        && (region.is_empty() || !region.chars().all(is_of_name))
    {
        return wrong("AWS_REGION", "the name of a region, such as eu-west-1 or garage", &region);
    }
    let other = OTHER_KEYS.iter().any(|name| variable(name).is_some());
    for name in KEYS {
        match variable(name).filter(|key| !key.is_empty()) {
            None if other => {}
            None => return Err(Error::Keys { missing: name }),
            Some(key) if key.chars().all(|c| c.is_ascii_graphic()) => {}
            Some(_) => return wrong(name, "a key without spaces and ends of lines", "others in it"),
        }
    }
    let Some(text) = variable("AWS_ENDPOINT_URL") else { return Ok(None) };
    let expected = "http://HOST:PORT or https://HOST";
    match Url::parse(&text) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            wrong("AWS_ENDPOINT_URL", expected, "a user in it")
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(Some(url)),
        Ok(_) | Err(_) => wrong("AWS_ENDPOINT_URL", expected, &format!("{text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(more: &[(&str, &str)]) -> Result<Option<Url>, String> {
        let keys = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "s3cret/+")];
        let of = |name: &str| {
            more.iter().chain(&keys).find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        check(&of).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_that_cannot_be_right_are_named() {
        assert_eq!(checked(&[]), Ok(None));
        for right in ["http://127.0.0.1:3900", "https://s3.example.org", "http://[::1]:3900/"] {
            assert!(checked(&[("AWS_ENDPOINT_URL", right)]).is_ok_and(|url| url.is_some()), "{right}");
        }
        for wrong in ["127.0.0.1:3900", "", "http://", "http://bad host", "ftp://example.org", "example.org"]
        {
            let found = checked(&[("AWS_ENDPOINT_URL", wrong)]).expect_err(wrong);
            let text =
                format!("AWS_ENDPOINT_URL: expected http://HOST:PORT or https://HOST, found {wrong:?}");
            assert_eq!(found, text);
        }
        let found = checked(&[("AWS_ENDPOINT_URL", "http://me:hidden@example.org")]).expect_err("a password");
        assert!(!found.contains("hidden"), "{found}");
        assert!(checked(&[("AWS_REGION", "a b")]).expect_err("a space").starts_with("AWS_REGION: "));
        let found = checked(&[("AWS_SECRET_ACCESS_KEY", "hidden\r")]).expect_err("a line's end");
        assert!(found.starts_with("AWS_SECRET_ACCESS_KEY: ") && !found.contains("hidden"), "{found}");
        let found = checked(&[("AWS_ACCESS_KEY_ID", "")]).expect_err("no key");
        assert!(found.contains("found no AWS_ACCESS_KEY_ID"), "{found}");
        let other = ("AWS_WEB_IDENTITY_TOKEN_FILE", "/run/token");
        assert_eq!(checked(&[("AWS_ACCESS_KEY_ID", ""), other]), Ok(None));
    }
}
