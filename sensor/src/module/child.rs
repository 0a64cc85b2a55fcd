//! Process of a module: the only place in the sensor that starts processes.
//!
//! Shell. Rules: the process gets nothing of the sensor's except three pipes, a folder of its own and a few
//! environment variables; it and its children are in a process group, which is killed with it (except
//! processes that leave the group: setsid(2)); its limits and the drop of privileges apply before its first
//! instruction.
//! `tokio::process` reaps the process; a process handle (`pidfd_open(2)`) signals when it ends, so that the
//! group is killed before its id can be reused.
//! Not here: which users may have written the file (`trust`), the protocol (`protocol`).

use super::protocol::ANSWER_LEN_MAX_BYTES;
use super::spec::Limits;
use super::stderr::Tail;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinSet;

/// Most open files of the process.
const FILES_MAX: u64 = 64;
/// Longest file that it may write, in bytes.
const FILE_LEN_MAX_BYTES: u64 = 256 << 20;
/// CPU seconds of each process it starts. Its own limit is raised while it stays within its budget.
const CPU_MAX_SECS: u64 = 60;
/// Address space for each byte of memory: programs reserve far more than they use.
const ADDRESSES_PER_BYTE: u64 = 16;
/// How long it may take to end after its input is closed, before it is killed.
pub const ENDING: Duration = Duration::from_secs(2);
/// How long to wait for its last output.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Search path of the process.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Parameters of a process.
#[derive(Debug)]
pub struct Start<'a> {
    /// The executable, with symbolic links resolved.
    pub program: &'a Path,
    /// The path that it gets as its name (`argv[0]`).
    pub called: &'a Path,
    pub arguments: &'a [String],
    /// User to run as; `None` for the sensor's user.
    pub user: Option<&'a str>,
    /// Further environment variables.
    pub env: &'a BTreeMap<String, String>,
    /// Working directory, also its `HOME`.
    pub folder: &'a Path,
    pub limits: Limits,
}

/// Failure of a module's process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It could not be started.
    #[error("cannot start {program}: {error}")]
    Start {
        /// Path of the executable.
        program: String,
        error: io::Error,
    },
    /// There is no such user.
    #[error("user: expected a user of this host, found {0:?}")]
    User(String),
    /// It ended; carries how.
    #[error("it ended ({0}), expected it to answer until its input ends")]
    Ended(String),
    /// It wrote a line without a call.
    #[error("it wrote a line without a call; expected one line for each call")]
    Unasked,
    /// Its line is too long.
    #[error("expected a line of at most {ANSWER_LEN_MAX_BYTES} bytes, found a longer one")]
    TooLong,
    /// It did not answer in time.
    #[error("expected an answer within {0:?} (answer_s), found none")]
    Late(Duration),
    #[error("the pipe to it failed: {0}")]
    Pipe(io::Error),
}

/// A running process.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    pid: Pid,
    /// Readable once the process has ended.
    handle: AsyncFd<OwnedFd>,
    /// `None` after its input was closed.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Reads its standard error.
    stderr: JoinSet<()>,
}

impl Child {
    /// Starts the process; its standard error goes to `tail`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(start: &Start<'_>, tail: Tail) -> Result<Child, Error> {
        let failed = |error| Error::Start { program: start.program.display().to_string(), error };
        let mut command = command(start)?;
        let mut process = command.spawn().map_err(failed)?;
        let pid = process.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = pid.expect("a process before its wait has a number");
        let handle =
            rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
        let handle = watched(handle).map_err(failed)?;
        let pipes = process.stdin.take().zip(process.stdout.take()).zip(process.stderr.take());
        let ((stdin, stdout), stderr) = pipes.expect("all three were asked for");
        let mut reading = JoinSet::new();
        reading.spawn(tail.read(stderr));
        let stdout = BufReader::new(stdout);
        Ok(Child { process, pid, handle, stdin: Some(stdin), stdout, stderr: reading })
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Sends a line, and returns the line of the answer if it arrives `within` this time. After an error the
    /// process must not be used any more.
    ///
    /// # Errors
    /// If it does not answer in time with exactly one line that is not too long.
    pub async fn call(&mut self, line: &str, within: Duration) -> Result<Vec<u8>, Error> {
        let exchange = async {
            let stdin = self.stdin.as_mut().ok_or(Error::Unasked)?;
            let writing = async {
                stdin.write_all(line.as_bytes()).await?;
                stdin.write_all(b"\n").await?;
                stdin.flush().await
            };
            // Writes and reads concurrently: a process that answers before it has read everything may leave
            // the pipe full for ever.
            let (written, read) = tokio::join!(writing, read_line(&mut self.stdout));
            let read = read?;
            match written {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Pipe(error)),
                _ => Ok(read),
            }
        };
        let answered = tokio::time::timeout(within, exchange).await.unwrap_or(Err(Error::Late(within)));
        match answered {
            Ok(Some(line)) if self.stdout.buffer().is_empty() => Ok(line),
            Ok(Some(_)) => Err(Error::Unasked),
            Ok(None) => Err(self.ended().await),
            Err(error) => Err(error),
        }
    }

    /// Waits until the process does something without a call, ends or writes, and returns that as an error.
    pub async fn unasked(&mut self) -> Error {
        let result = tokio::select! {
            biased;
            part = self.stdout.fill_buf() => part.map(|part| !part.is_empty()),
            // Its children may still have its output open.
            _ = self.handle.readable() => Ok(false),
        };
        match result {
            Ok(false) => self.ended().await,
            Ok(true) => Error::Unasked,
            Err(error) => Error::Pipe(error),
        }
    }

    /// How the process ended, after its output was closed. Waits for the end for a limited time.
    async fn ended(&mut self) -> Error {
        let how = match tokio::time::timeout(ENDING, self.handle.readable()).await {
            Ok(_) => self.kill().await.map_or_else(|error| error.to_string(), exit_text),
            Err(_) => "it closed its output".to_owned(),
        };
        Error::Ended(how)
    }

    /// Closes its input, waits until it ends, and kills what is left.
    pub async fn end(mut self) {
        self.stdin = None;
        // A process that does not end in time is killed all the same.
        let _ = tokio::time::timeout(ENDING, self.handle.readable()).await;
        let _ = self.kill().await;
    }

    /// Kills it and its process group at once; still reads its last output.
    pub async fn end_at_once(mut self) {
        let _ = self.kill().await;
    }

    /// Kills it and its process group, and reaps it.
    async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.kill_group();
        let status = self.process.wait().await;
        // Its last output says why it ended.
        let _ = tokio::time::timeout(LAST_WORDS, self.stderr.join_next()).await;
        status
    }

    fn kill_group(&self) {
        // Only before it is reaped: until then its id, and so the id of its group, is not reused.
        if self.process.id().is_some() {
            // An empty group is fine too.
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Raises the CPU limit of the process: while it stays within its budget, it may use more CPU time than
    /// its children may.
    pub fn move_cpu_limit(&self, used: Duration) {
        let limit = Rlimit { current: Some(used.as_secs() + CPU_MAX_SECS), maximum: None };
        // If the process runs as another user this is refused, and its limit stays that of its children.
        let _ = rustix::process::prlimit(Some(self.pid), Resource::Cpu, limit);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Registers a process handle with the runtime.
fn watched(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[allow(unsafe_code)] // The library cannot know that its file stays open.
    // SAFETY: an `OwnedFd` is the only owner of its file, which is open until it is dropped; nothing else is
    // put in its place.
    let watched = unsafe { AsyncFd::register(handle) };
    watched.map_err(io::Error::from)
}

/// Reads a line, without its line feed; `None` at the end of the stream, where an unfinished line is
/// discarded.
async fn read_line(from: &mut BufReader<ChildStdout>) -> Result<Option<Vec<u8>>, Error> {
    let mut line = Vec::new();
    loop {
        let part = from.fill_buf().await.map_err(Error::Pipe)?;
        if part.is_empty() {
            return Ok(None);
        }
        let end = memchr::memchr(b'\n', part);
        line.extend_from_slice(&part[..end.unwrap_or(part.len())]);
        let len = end.map_or(part.len(), |end| end + 1);
        from.consume(len);
        if line.len() > ANSWER_LEN_MAX_BYTES {
            return Err(Error::TooLong);
        }
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

fn exit_text(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) if signal == Signal::XCPU.as_raw() => {
            "killed: it used more CPU time than it may".to_owned()
        }
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[allow(clippy::disallowed_methods)] // Modules are the only programs that a sensor starts, and only where its configuration names a folder.
fn command(start: &Start<'_>) -> Result<tokio::process::Command, Error> {
    let mut command = std::process::Command::new(start.program);
    command.arg0(start.called).args(start.arguments).current_dir(start.folder).env_clear();
    command.env("PATH", PATH).env("LANG", "C.UTF-8").env("HOME", start.folder).envs(start.env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    if let Some(name) = start.user {
        let user = user(name).ok_or_else(|| Error::User(name.to_owned()))?;
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    let memory = start.limits.memory_bytes;
    let limit = move || {
        limit(memory)?;
        // The process must not inherit the sensor's privileges. A kernel too old for ambient capabilities has
        // nothing to clear.
        let _ = rustix::thread::clear_ambient_capability_set();
        rustix::thread::set_no_new_privs(true)?;
        Ok(())
    };
    #[allow(unsafe_code)] // `std` has no safe function to set limits of a process before it starts.
    // SAFETY: the closure runs between fork and exec, where only async-signal-safe operations are allowed: it
    // makes system calls alone, takes no lock and allocates nothing.
    unsafe {
        command.pre_exec(limit);
    }
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    Ok(command)
}

/// Finds the user by name, or else by number.
fn user(name: &str) -> Option<nix::unistd::User> {
    let of_number = || nix::unistd::User::from_uid(name.parse::<u32>().ok()?.into()).ok()?;
    nix::unistd::User::from_name(name).ok().flatten().or_else(of_number)
}

/// Sets the limits of the calling process.
fn limit(memory_bytes: u64) -> io::Result<()> {
    let addresses = memory_bytes.saturating_mul(ADDRESSES_PER_BYTE);
    for (resource, value) in [
        (Resource::Data, memory_bytes),
        (Resource::As, addresses),
        (Resource::Nofile, FILES_MAX),
        (Resource::Fsize, FILE_LEN_MAX_BYTES),
        (Resource::Core, 0),
    ] {
        // The limit of the sensor itself may be lower, and only root could raise it.
        let value = rustix::process::getrlimit(resource).maximum.map_or(value, |most| most.min(value));
        rustix::process::setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    }
    let most = rustix::process::getrlimit(Resource::Cpu).maximum;
    let value = most.map_or(CPU_MAX_SECS, |most| most.min(CPU_MAX_SECS));
    rustix::process::setrlimit(Resource::Cpu, Rlimit { current: Some(value), maximum: most })?;
    Ok(())
}

/// CPU time of a process and of the children it has reaped; zero once it is gone.
#[must_use]
pub fn cpu_time(pid: u32) -> Duration {
    let text = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let per_second = rustix::param::clock_ticks_per_second();
    Duration::from_millis(cpu_ticks(&text).unwrap_or(0).saturating_mul(1000) / per_second.max(1))
}

/// Sum of the fields 14 to 17 of `/proc/PID/stat` (proc_pid_stat(5)). The name before them may contain
/// anything.
fn cpu_ticks(stat: &[u8]) -> Option<u64> {
    let after_name = memchr::memrchr(b')', stat)? + 2;
    let fields = std::str::from_utf8(stat.get(after_name..)?).ok()?.split(' ');
    let ticks: Option<Vec<u64>> = fields.skip(11).take(4).map(|field| field.parse().ok()).collect();
    ticks.filter(|ticks| ticks.len() == 4).map(|ticks| ticks.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_the_process_and_of_those_it_waited_for() {
        let stat = b"7 (a) 5 b) S 1 7 7 0 -1 4194560 100 0 0 0 3 2 10 5 20 0 1 0 5000 1 1";
        assert_eq!(cpu_ticks(stat), Some(20));
        assert_eq!(cpu_ticks(b"7 (a) S 1 7"), None);
        assert_eq!(cpu_ticks(b""), None);
        assert_eq!(cpu_time(u32::MAX), Duration::ZERO);
    }
}
