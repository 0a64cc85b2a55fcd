//! Growing and rotated log: lines of Slurm's controller, numbered by their jobs.
//!
//! Rule: lines are written completely at about the requested rate, by one thread that is stopped and joined;
//! the number of the last line is known. Rotation renames files, as logrotate does without `copytruncate`.
//! Not here: reading them ([`crate::grid`]), comparing the events ([`crate::ledger`]).

use anyhow::{Context, Result, anyhow};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Default number of rotated files: minutes of rotations, so that none is deleted before a busy machine has
/// read it.
pub const ROTATED_KEPT: usize = 120;
/// Batches of lines written per second.
const STROKES_PER_SEC: u32 = 50;

/// Growth of a log.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Lines written per second.
    pub lines_per_sec: usize,
    /// Time between two rotations, while lines are written.
    pub rotate_every: Duration,
    /// The writer pauses while it is ahead of the reader by more lines than this, so that on a slow or busy
    /// machine no rotated file is deleted before it was read.
    pub ahead_max: usize,
    /// Number of rotated files; older ones are deleted.
    pub kept: usize,
}

/// A log with a thread that writes it.
#[derive(Debug)]
pub struct Writer {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    read: Arc<AtomicUsize>,
    thread: Option<JoinHandle<Result<usize>>>,
}

impl Writer {
    /// Start to write the log at `path`, from line 1.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn start(path: &Path, growth: Growth) -> Result<Writer> {
        let mut log = Log::create(path, growth)?;
        let (stop, written, read) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (is_over, count, seen) = (Arc::clone(&stop), Arc::clone(&written), Arc::clone(&read));
        let write = move || {
            while !is_over.load(Ordering::Relaxed) {
                if log.number <= seen.load(Ordering::Relaxed) + growth.ahead_max {
                    log.stroke()?;
                }
                count.store(log.number, Ordering::Relaxed);
                std::thread::sleep(Duration::from_secs(1) / STROKES_PER_SEC);
            }
            Ok(log.number)
        };
        let thread = std::thread::Builder::new().name("log writer".into()).spawn(write)?;
        Ok(Writer { stop, written, read, thread: Some(thread) })
    }

    /// Number of lines written so far.
    #[must_use]
    pub fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// Report to the writer how many lines were received at the other end.
    pub fn report_read(&self, lines: usize) {
        self.read.store(lines, Ordering::Relaxed);
    }

    /// Stop writing; returns the number of the last line.
    ///
    /// # Errors
    /// If a line could not be written.
    pub fn stop(mut self) -> Result<usize> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("a writer is stopped once")?;
        thread.join().map_err(|_| anyhow!("the log writer panicked"))?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Log {
    path: PathBuf,
    file: File,
    growth: Growth,
    number: usize,
    strokes: u32,
}

impl Log {
    fn create(path: &Path, growth: Growth) -> Result<Log> {
        let file = append(path)?;
        Ok(Log { path: path.to_owned(), file, growth, number: 0, strokes: 0 })
    }

    /// Write the lines that are due, and rotate if that is due.
    fn stroke(&mut self) -> Result<()> {
        let strokes_per_file = self.growth.rotate_every.as_secs_f64() * f64::from(STROKES_PER_SEC);
        if f64::from(self.strokes) >= strokes_per_file {
            self.strokes = 0;
            self.rotate()?;
        }
        self.strokes += 1;
        let per_stroke = self.growth.lines_per_sec.div_ceil(STROKES_PER_SEC as usize);
        let mut text = String::with_capacity(per_stroke * 96);
        for _ in 0..per_stroke {
            self.number += 1;
            text.push_str(&line(self.number));
        }
        // In two writes, so that a reader also sees lines that are cut anywhere.
        let cut = text.len() / 3 * 2;
        self.file.write_all(&text.as_bytes()[..cut])?;
        self.file.write_all(&text.as_bytes()[cut..])?;
        Ok(())
    }

    fn rotate(&mut self) -> Result<()> {
        let name = |number: usize| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..=self.growth.kept).rev() {
            if name(number).exists() {
                std::fs::rename(name(number), name(number + 1))?;
            }
        }
        std::fs::rename(&self.path, name(1))?;
        match std::fs::remove_file(name(self.growth.kept + 1)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Err(_) | Ok(()) => {}
        }
        self.file = append(&self.path)?;
        Ok(())
    }
}

fn append(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.with_context(|| format!("cannot write {}", path.display()))
}

/// The line with this number: a submission of the job of that number; the time advances by one millisecond a
/// line.
#[must_use]
pub fn line(number: usize) -> String {
    let (millis, secs) = (number % 1000, number / 1000);
    let (hour, minute, second) = (secs / 3600 % 24, secs / 60 % 60, secs % 60);
    format!(
        "[2026-11-20T{hour:02}:{minute:02}:{second:02}.{millis:03}] _slurm_rpc_submit_batch_job: JobId={number} InitPrio=4294901759 usec=718\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_renames_every_file_and_goes_on_in_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurmctld.log");
        let growth =
            Growth { lines_per_sec: 100, rotate_every: Duration::from_millis(20), ahead_max: 0, kept: 2 };
        let mut log = Log::create(&path, growth).unwrap();
        for _ in 0..3 {
            log.stroke().unwrap();
        }
        assert_eq!(log.number, 6);
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("slurmctld.log"), line(5) + &line(6));
        assert_eq!(read("slurmctld.log.1"), line(3) + &line(4));
        assert_eq!(read("slurmctld.log.2"), line(1) + &line(2));
        log.stroke().unwrap();
        assert_eq!(read("slurmctld.log.2"), line(3) + &line(4));
        assert!(!folder.path().join("slurmctld.log.3").exists(), "deleted");
    }

    #[test]
    fn lines_are_numbered_and_timed() {
        let expected = "[2026-11-20T01:01:01.007] _slurm_rpc_submit_batch_job: JobId=3661007 InitPrio=4294901759 usec=718\n";
        assert_eq!(line(3_661_007), expected);
    }
}
