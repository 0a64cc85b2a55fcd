//! A module in a process of its own: the one place of the sensor that starts processes.
//!
//! Shell. Rules: it is given nothing of the sensor's but three pipes, a folder of its own and a few variables; it and what it
//! starts are in a process group, which is killed with it (but for who leaves it: setsid(2)); its limits and the loss of rights
//! hold before its first instruction.
//! `tokio::process` waits for its end; a handle of the process (`pidfd_open(2)`) tells when that is, so that the group is killed
//! while its number cannot be another's.
//! Not here: who may have written the file (`trust`), what is said (`protocol`).

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

/// Files that it may have open.
const FILES_MAX: u64 = 64;
/// Longest file that it may write, in bytes.
const FILE_LEN_MAX_BYTES: u64 = 256 << 20;
/// CPU seconds of each process that it starts; its own are moved on as long as it keeps its budget.
const CPU_MAX_SECS: u64 = 60;
/// Addresses for each byte of memory: programs set aside far more than they use.
const ADDRESSES_PER_BYTE: u64 = 16;
/// How long it may take to end once nothing more comes, before it is killed.
pub const ENDING: Duration = Duration::from_secs(2);
/// How long is waited for what it said last.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What is to be started.
#[derive(Debug)]
pub struct Start<'a> {
    /// The file, without links on the way.
    pub program: &'a Path,
    /// What it is told that it is called.
    pub called: &'a Path,
    /// What it is given.
    pub arguments: &'a [String],
    /// As whom.
    pub user: Option<&'a str>,
    /// More variables.
    pub env: &'a BTreeMap<String, String>,
    /// Its folder.
    pub folder: &'a Path,
    /// What it may take.
    pub limits: Limits,
}

/// What went wrong with a module's process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It could not be started.
    #[error("cannot start {program}: {error}")]
    Start {
        /// What.
        program: String,
        /// What the system said.
        error: io::Error,
    },
    /// There is no such user.
    #[error("user: expected a user of this host, found {0:?}")]
    User(String),
    /// It ended.
    #[error("it ended ({0}), expected it to answer until its input ends")]
    Ended(String),
    /// It wrote a line without a call.
    #[error("it wrote a line without a call; expected one line for each call")]
    Unasked,
    /// It said too much.
    #[error("expected a line of at most {ANSWER_LEN_MAX_BYTES} bytes, found a longer one")]
    TooLong,
    /// It did not answer.
    #[error("expected an answer within {0:?} (answer_s), found none")]
    Late(Duration),
    /// The pipe failed.
    #[error("the pipe to it failed: {0}")]
    Pipe(io::Error),
}

/// A process that answers.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    pid: Pid,
    /// Readable once it has ended.
    handle: AsyncFd<OwnedFd>,
    /// None once nothing more comes.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Reads what it says beside.
    stderr: JoinSet<()>,
}

impl Child {
    /// Start it; what it says beside its answers goes to `tail`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(start: &Start<'_>, tail: Tail) -> Result<Child, Error> {
        let failed = |error| Error::Start { program: start.program.display().to_string(), error };
        let mut command = command(start)?;
        let mut process = command.spawn().map_err(failed)?;
        let pid = process.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = pid.expect("a process that nobody waited for has a number");
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

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Say a line, and give the line that it answers `within` this time. After a failure it is of no use any more.
    ///
    /// # Errors
    /// If it does not answer in time, with one line that is not too long.
    pub async fn call(&mut self, line: &str, within: Duration) -> Result<Vec<u8>, Error> {
        let saying = async {
            let stdin = self.stdin.as_mut().ok_or(Error::Unasked)?;
            let said = async {
                stdin.write_all(line.as_bytes()).await?;
                stdin.write_all(b"\n").await?;
                stdin.flush().await
            };
            // Who answers before all was said to it has not read it, and may keep the pipe full for ever: both at once.
            let (said, read) = tokio::join!(said, read_line(&mut self.stdout));
            let read = read?;
            match said {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Pipe(error)),
                _ => Ok(read),
            }
        };
        let answered = tokio::time::timeout(within, saying).await.unwrap_or(Err(Error::Late(within)));
        match answered {
            Ok(Some(line)) if self.stdout.buffer().is_empty() => Ok(line),
            Ok(Some(_)) => Err(Error::Unasked),
            Ok(None) => Err(self.ended().await),
            Err(error) => Err(error),
        }
    }

    /// Wait until it does something unasked: ends, or says something. Gives what.
    pub async fn unasked(&mut self) -> Error {
        let said = tokio::select! {
            biased;
            part = self.stdout.fill_buf() => part.map(|part| !part.is_empty()),
            // What it started may have its output open still.
            _ = self.handle.readable() => Ok(false),
        };
        match said {
            Ok(false) => self.ended().await,
            Ok(true) => Error::Unasked,
            Err(error) => Error::Pipe(error),
        }
    }

    /// How it ended, once it said that it says nothing more.
    async fn ended(&mut self) -> Error {
        let how = match tokio::time::timeout(ENDING, self.handle.readable()).await {
            Ok(_) => self.kill().await.map_or_else(|error| error.to_string(), told),
            Err(_) => "it closed its output".to_owned(),
        };
        Error::Ended(how)
    }

    /// Tell it that nothing more comes, wait until it ends, and kill what is left.
    pub async fn end(mut self) {
        self.stdin = None;
        // One that does not end is killed all the same.
        let _ = tokio::time::timeout(ENDING, self.handle.readable()).await;
        let _ = self.kill().await;
    }

    /// Kill it and all that it started, and keep what it said last.
    pub async fn end_at_once(mut self) {
        let _ = self.kill().await;
    }

    /// Kill it and all that it started.
    async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.kill_group();
        let status = self.process.wait().await;
        // Its last words are why it ended.
        let _ = tokio::time::timeout(LAST_WORDS, self.stderr.join_next()).await;
        status
    }

    fn kill_group(&self) {
        // Before it is waited for: until then its number, and so that of its group, is no other's.
        if self.process.id().is_some() {
            // That there is no one left is as well.
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// As long as it keeps its budget, it may use more CPU time than what it starts may.
    pub fn move_cpu_limit(&self, used: Duration) {
        let limit = Rlimit { current: Some(used.as_secs() + CPU_MAX_SECS), maximum: None };
        // Where it is another user's this is refused, and its limit is that of any process it starts.
        let _ = rustix::process::prlimit(Some(self.pid), Resource::Cpu, limit);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// A handle of a process, to be waited for with all else.
fn watched(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[allow(unsafe_code)] // The library cannot know that its file stays open.
    // SAFETY: an OwnedFd is the only owner of its file, which is open until it is dropped; nothing else is put in its place.
    let watched = unsafe { AsyncFd::register(handle) };
    watched.map_err(io::Error::from)
}

/// A line without its end; none at the end of all.
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

fn told(status: ExitStatus) -> String {
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

#[allow(clippy::disallowed_methods)] // Modules are the one thing that a sensor starts, where its configuration names a folder.
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
        // What the sensor may beyond others is not for what it starts; a kernel too old to hand it on has nothing to clear.
        let _ = rustix::thread::clear_ambient_capability_set();
        rustix::thread::set_no_new_privs(true)?;
        Ok(())
    };
    #[allow(unsafe_code)] // The standard library has no safe way to set limits of a process before it begins.
    // SAFETY: the closure runs between fork and exec, where only what is safe in a handler of signals may be done: it makes
    // system calls alone, takes no lock and allocates nothing.
    unsafe {
        command.pre_exec(limit);
    }
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    Ok(command)
}

/// The user of this name, or of this number.
fn user(name: &str) -> Option<nix::unistd::User> {
    let of_number = || nix::unistd::User::from_uid(name.parse::<u32>().ok()?.into()).ok()?;
    nix::unistd::User::from_name(name).ok().flatten().or_else(of_number)
}

/// The limits of the process that calls it.
fn limit(memory_bytes: u64) -> io::Result<()> {
    let addresses = memory_bytes.saturating_mul(ADDRESSES_PER_BYTE);
    for (resource, value) in [
        (Resource::Data, memory_bytes),
        (Resource::As, addresses),
        (Resource::Nofile, FILES_MAX),
        (Resource::Fsize, FILE_LEN_MAX_BYTES),
        (Resource::Core, 0),
    ] {
        // What holds for the sensor already may be lower, and only root could raise it.
        let value = rustix::process::getrlimit(resource).maximum.map_or(value, |most| most.min(value));
        rustix::process::setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    }
    let most = rustix::process::getrlimit(Resource::Cpu).maximum;
    let value = most.map_or(CPU_MAX_SECS, |most| most.min(CPU_MAX_SECS));
    rustix::process::setrlimit(Resource::Cpu, Rlimit { current: Some(value), maximum: most })?;
    Ok(())
}

/// CPU time that a process and what it started and waited for have used; zero once it is gone.
#[must_use]
pub fn cpu_time(pid: u32) -> Duration {
    let text = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let per_second = rustix::param::clock_ticks_per_second();
    Duration::from_millis(cpu_ticks(&text).unwrap_or(0).saturating_mul(1000) / per_second.max(1))
}

/// The fields 14 to 17 of `/proc/PID/stat` (proc_pid_stat(5)); the name before them may hold anything.
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
