//! Log of a daemon: tracing events, on standard error.
//!
//! Rule: standard output is reserved for the output of a command, so the log never uses it.
//! [`FILTER_VARIABLE`] selects what is logged or, where it is unset, the program.
//! Not here: metrics about the daemon (they are samples like any other).

use std::io;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Environment variable that chooses the log levels, such as `info,sensor=debug`.
pub const FILTER_VARIABLE: &str = "VISPERF_LOG";

/// Output format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// One line of text per event.
    #[default]
    Human,
    /// One JSON object per line, for a log collector.
    Json,
}

/// Why telemetry could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The filter is invalid.
    #[error(
        "{origin} is {text:?}; expected a level (error, warn, info, debug, trace, off) or a list such as \
         info,sensor=debug ({reason})"
    )]
    Filter {
        /// Origin of the filter: the variable's name, or the program.
        origin: &'static str,
        /// Text of the filter.
        text: String,
        /// Error of the parser.
        reason: String,
    },
    /// Telemetry was already started in this process.
    #[error("telemetry was started twice in this process")]
    Started,
}

/// Start to log the events of this process to standard error. [`FILTER_VARIABLE`] is the filter; where it is
/// unset or empty, `default_filter` is.
///
/// # Errors
/// If the filter is invalid or telemetry was already started; nothing has changed then.
pub fn start(form: Form, default_filter: &str) -> Result<(), Error> {
    let (origin, text) = match std::env::var(FILTER_VARIABLE) {
        Ok(text) if !text.trim().is_empty() => (FILTER_VARIABLE, text),
        Ok(_) | Err(_) => ("the default filter", default_filter.to_owned()),
    };
    let filter = filter(origin, &text)?;
    match form {
        Form::Human => human(filter, io::stderr).try_init(),
        Form::Json => json(filter, io::stderr).try_init(),
    }
    .map_err(|_| Error::Started)
}

fn filter(origin: &'static str, text: &str) -> Result<EnvFilter, Error> {
    let refused = |reason: String| Error::Filter { origin, text: text.to_owned(), reason };
    // The parser takes a misspelt level for the name of a target, which then logs everything.
    let is_level = |word: &str| word.parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    if let Some(word) = words.clone().find(|word| !word.contains(['=', '[', ':']) && !is_level(word)) {
        return Err(refused(format!(
            "{word:?} is no level; of one part of the program it would be {word}=debug"
        )));
    }
    EnvFilter::builder().parse(text).map_err(|reason| refused(reason.to_string()))
}

fn human<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    // No colours: the log is as often read by journald as on a terminal, and log text may contain escape
    // codes.
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
    tracing_subscriber::registry().with(filter).with(lines)
}

fn json<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(writer);
    tracing_subscriber::registry().with(filter).with(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn the_filter_decides_what_is_written() {
        let page = Page::default();
        let subscriber = human(filter("test", "warn,chatty=off").expect("readable"), page.clone());
        tracing::subscriber::with_default(subscriber, events);
        let text = page.text();
        assert!(text.contains("disk is full") && text.contains("path=\"/var\""), "{text}");
        assert!(!text.contains("just started") && !text.contains("never mind"), "{text}");
    }

    #[test]
    fn the_json_form_is_one_object_a_line() {
        let page = Page::default();
        let subscriber = json(filter("test", "info,chatty=off").expect("readable"), page.clone());
        tracing::subscriber::with_default(subscriber, events);
        let lines: Vec<String> = page.text().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        for line in &lines {
            assert!(line.starts_with('{') && line.ends_with('}'), "{line}");
        }
        assert!(lines[1].contains(r#""path":"/var""#), "{lines:?}");
    }

    #[test]
    fn a_bad_filter_says_who_gave_it_and_what_is_allowed() {
        let error = filter(FILTER_VARIABLE, "sensor=loud").expect_err("no such level").to_string();
        assert!(error.starts_with("VISPERF_LOG is \"sensor=loud\"; expected a level"), "{error}");
        let error = filter("the program", "info,loud").expect_err("no such level").to_string();
        assert!(
            error.contains("\"loud\" is no level; of one part of the program it would be loud=debug"),
            "{error}"
        );
        for good in ["info", "WARN,sensor=debug", "off", "error,overlay::net=trace", "sensor[span]=info", "3"]
        {
            assert!(filter("the program", good).is_ok(), "{good}");
        }
    }

    fn events() {
        tracing::info!("just started");
        tracing::warn!(path = "/var", "disk is full");
        tracing::error!(target: "chatty", "never mind");
    }

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Page {
        type Writer = Page;
        fn make_writer(&self) -> Page {
            self.clone()
        }
    }
}
