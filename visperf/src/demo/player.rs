//! Replay: writes each line of a recording when it is due, to files that the sensor tails.
//!
//! Rule: files are only appended to, as middleware does. Not here: when lines are due (`recording`).

use super::recording::{Line, Recording};
use super::{LOGS, Log};
use anyhow::Context as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Batching interval: lines due within it are written together.
const TOGETHER: Duration = Duration::from_millis(50);

/// A recording and the folder it is written to.
pub(crate) struct Player {
    recording: Recording,
    folder: PathBuf,
    speed: f64,
    over: CancellationToken,
}

impl Player {
    /// Replay all recordings below `folder`, `speed` times as fast as recorded.
    pub(crate) fn new(folder: PathBuf, speed: f64) -> Player {
        Player { recording: Recording::new(LOGS), folder, speed, over: CancellationToken::new() }
    }

    /// Duration of the replay.
    pub(crate) fn length(&self) -> Duration {
        self.recording.length().div_f64(self.speed)
    }

    pub(crate) fn lines(&self) -> u64 {
        self.recording.lines.len() as u64
    }

    pub(crate) fn clusters(&self) -> Vec<&'static str> {
        let mut clusters: Vec<_> = LOGS.iter().map(|log| log.cluster).collect();
        clusters.dedup();
        clusters
    }

    /// Every log that is written, with the host it was recorded on.
    pub(crate) fn logs(&self) -> Vec<(&'static str, PathBuf)> {
        LOGS.iter().map(|log| (log.host, path(&self.folder, log))).collect()
    }

    /// Token that is cancelled when everything is written.
    pub(crate) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Create the files, which must exist when the sensor starts.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        for cluster in self.clusters() {
            let folder = self.folder.join(cluster);
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        LOGS.iter().try_for_each(|log| open(&self.folder, log).map(drop))
    }

    /// Write until everything is written, then wait for `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let start = crate::output::times::now().micros();
        let begin = tokio::time::Instant::now();
        let mut files = LOGS.iter().map(|log| open(&self.folder, log)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut rest = self.recording.lines.as_slice();
        while let Some(first) = rest.first() {
            let due = first.due.div_f64(self.speed);
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = tokio::time::sleep_until(begin + due) => {}
            }
            let now = begin.elapsed() + TOGETHER;
            let count = rest.iter().take_while(|line| line.due.div_f64(self.speed) <= now).count().max(1);
            let (lines, later) = rest.split_at(count);
            self.write(&mut files, lines, start)?;
            rest = later;
        }
        self.over.cancel();
        shutdown.cancelled().await;
        Ok(())
    }

    fn write(&self, files: &mut [File], lines: &[Line], start: i64) -> anyhow::Result<()> {
        let mut texts = vec![Vec::new(); files.len()];
        for line in lines {
            texts[line.log].extend_from_slice(&self.recording.text(line, start, self.speed));
            texts[line.log].push(b'\n');
        }
        for ((file, text), log) in files.iter_mut().zip(&texts).zip(LOGS) {
            file.write_all(text).with_context(|| format!("cannot write the demo's {}", log.name))?;
        }
        Ok(())
    }
}

fn path(folder: &Path, log: &Log) -> PathBuf {
    folder.join(log.cluster).join(log.name)
}

fn open(folder: &Path, log: &Log) -> anyhow::Result<File> {
    let path = path(folder, log);
    File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))
}
