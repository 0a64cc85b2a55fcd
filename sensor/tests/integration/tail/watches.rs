//! Kernel watches exhausted: the tail polls the files instead and reports it, and nothing is lost.
//!
//! The limits are really reached, in a user namespace with its own limits. Root must be able to create one;
//! where ordinary users may not, the test prints that and passes.

use crate::tail::confined;
use crate::tail::rig::{EachLineFilter, text};
use sensor::tail::handle::Handle;
use sensor::tail::{Config, Spec};
use std::path::Path;
use std::time::Duration;

const WATCHES: &str = "/proc/sys/user/max_inotify_watches";
const INSTANCES: &str = "/proc/sys/user/max_inotify_instances";

/// Runs the test in a user namespace.
async fn in_namespace(test: &str, body: impl AsyncFnOnce()) {
    if confined::is_inside() {
        return body().await;
    }
    match confined::succeeds("unshare", &["--user", "--map-root-user", "true"]) {
        Ok(()) => confined::run_again(test, "unshare", &["--user", "--map-root-user"]),
        Err(why) if confined::has_rights() => {
            panic!("no user namespace, so watches cannot be exhausted: {why}")
        }
        Err(why) => eprintln!(
            "{test}: not shown; ordinary users have no user namespaces here ({why}); run it as root"
        ),
    }
}

fn limit(file: &str, most: u32) {
    std::fs::write(file, most.to_string()).unwrap_or_else(|error| panic!("cannot write {file}: {error}"));
}

fn append(path: &Path, line: &str) {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

/// A tail on a log in each of three folders.
struct Three {
    directory: tempfile::TempDir,
    handle: Handle,
    written: u64,
}

impl Three {
    fn start() -> Three {
        let directory = tempfile::tempdir().unwrap();
        for (number, folder) in ["0", "1", "2"].iter().enumerate() {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
            append(&directory.path().join(folder).join("log"), &format!("{number} in {folder}"));
        }
        let spec = |folder: &str| Spec::new(directory.path().join(folder).join("log").to_str().unwrap());
        let mut config = Config::new("host", ["0", "1", "2"].map(spec).into());
        config.rescan = Duration::from_millis(100);
        let state = directory.path().join("state");
        let handle = Handle::start(config, &state, EachLineFilter::boxed(), EachLineFilter::join()).unwrap();
        Three { directory, handle, written: 3 }
    }

    /// Writes lines to all three, with a rotation, and checks that all of them arrive.
    async fn lines_come(&mut self) {
        for number in 0..20 {
            for folder in ["0", "1", "2"] {
                let log = self.directory.path().join(folder).join("log");
                append(&log, &format!("{} in {folder}", self.written));
                if number == 10 {
                    std::fs::rename(&log, log.with_extension(self.written.to_string())).unwrap();
                }
                self.written += 1;
            }
        }
        let (mut next, written) = (self.handle.subscribe(), self.written);
        let all = next.wait_for(|next| *next >= written);
        tokio::time::timeout(Duration::from_secs(30), all).await.expect("lines were lost").unwrap();
        let page = self.handle.reader().read(0, 10_000, |_| true).unwrap();
        let mut found: Vec<_> = page.events.iter().map(|event| text(event, "line")).collect();
        found.sort_by_key(|line| line.split(' ').next().unwrap().parse::<u64>().unwrap());
        let expected: Vec<_> = (0..written).map(|number| format!("{number} in {}", number % 3)).collect();
        assert_eq!(found, expected);
    }

    /// Waits until the state has a message with this word, or no such message.
    async fn says(&self, word: Option<&str>) {
        let is_reported = || {
            let health = self.handle.status().health;
            match word {
                Some(word) => {
                    health.iter().any(|text| text.contains(word) && text.contains("they are looked for"))
                }
                None => health.is_empty(),
            }
        };
        let waited = async {
            let mut look = tokio::time::interval(Duration::from_millis(20));
            while !is_reported() {
                look.tick().await;
            }
        };
        let health = || self.handle.status().health;
        let in_time = tokio::time::timeout(Duration::from_secs(30), waited).await;
        in_time.unwrap_or_else(|_| panic!("expected {word:?}, found {:?}", health()));
    }
}

#[tokio::test]
async fn root_without_watches_files_are_looked_at_and_that_is_said() {
    in_namespace("tail::watches::root_without_watches_files_are_looked_at_and_that_is_said", async || {
        limit(WATCHES, 1);
        let mut three = Three::start();
        three.says(Some("watch")).await;
        three.lines_come().await;
        // Watches that become available are used again.
        limit(WATCHES, 100);
        three.says(None).await;
        three.lines_come().await;
    })
    .await;
}

#[tokio::test]
async fn root_without_an_instance_to_watch_with_files_are_looked_at_and_that_is_said() {
    in_namespace(
        "tail::watches::root_without_an_instance_to_watch_with_files_are_looked_at_and_that_is_said",
        async || {
            limit(INSTANCES, 0);
            let mut three = Three::start();
            three.says(Some("the kernel")).await;
            three.lines_come().await;
            limit(INSTANCES, 10);
            three.says(None).await;
            three.lines_come().await;
        },
    )
    .await;
}
