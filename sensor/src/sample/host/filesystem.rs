//! Space and files of each mounted file system, by `statvfs`.
//!
//! The sweep itself calls `statvfs` on local file systems; all others go through `remote_mounts`. The mount
//! table is parsed again only when its text changed.

use super::metric_cache::ENTRIES_MAX;
use super::mounts::{self, Mount, Reach};
use super::proc_file::ProcFile;
use super::remote_mounts::{Figures, RemoteMounts, Reply, Statvfs};
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::{Rows, metric};
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::sample::{Metric, Semantics};

/// Collector of file systems.
pub struct FileSystem {
    file: ProcFile,
    /// The text of the mount table from which `mounted` was parsed.
    text: Vec<u8>,
    mounted: Vec<Mounted>,
    ask: Statvfs,
    remote: RemoteMounts,
}

struct Mounted {
    path: PathBuf,
    reach: Reach,
    size: Arc<Metric>,
    free: Arc<Metric>,
    available: Arc<Metric>,
    files: Arc<Metric>,
    files_free: Arc<Metric>,
    read_only: Arc<Metric>,
    failing: Arc<Metric>,
}

impl FileSystem {
    /// Creates the collector; reads the mounts listed below `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> FileSystem {
        FileSystem::asking(proc, Arc::new(figures))
    }

    /// As [`FileSystem::new`], with another function in place of `statvfs`.
    #[must_use]
    pub fn asking(proc: &Path, ask: Statvfs) -> FileSystem {
        FileSystem {
            file: ProcFile::new(proc, "self/mountinfo"),
            text: Vec::new(),
            mounted: Vec::new(),
            remote: RemoteMounts::new(Arc::clone(&ask)),
            ask,
        }
    }
}

impl Collector for FileSystem {
    fn name(&self) -> &'static str {
        "filesystem"
    }

    fn collect(&mut self, now: Now, out: &mut Rows) -> Result<(), Error> {
        let text = self.file.read()?;
        if text != self.text {
            let parsed =
                mounts::parse(text).map(|mounts| mounts.iter().take(ENTRIES_MAX).map(Mounted::new).collect());
            self.text = text.to_vec();
            self.mounted = match parsed {
                Ok(mounted) => mounted,
                Err(malformed) => {
                    // Parse again, and report again, as long as the text is malformed.
                    self.text.clear();
                    return Err(self.file.malformed(malformed));
                }
            };
        }
        for mounted in &self.mounted {
            let reply = match mounted.reach {
                Reach::Local => (self.ask)(&mounted.path).map_or(Reply::Failing, Reply::Known),
                Reach::Remote => self.remote.reply(&mounted.path, now.running),
            };
            mounted.add_rows(reply, out);
        }
        self.remote.forget_others();
        Ok(())
    }
}

impl Mounted {
    fn new(mount: &Mount<'_>) -> Mounted {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (device, mountpoint, fstype) = (text(&mount.device), text(&mount.mountpoint), text(mount.fstype));
        let labels = [("device", &*device), ("fstype", &*fstype), ("mountpoint", &*mountpoint)];
        let bytes = |name| metric(name, "bytes", Semantics::Gauge, &labels);
        let count = |name| metric(name, "", Semantics::Gauge, &labels);
        let state = |name| metric(name, "", Semantics::State, &labels);
        Mounted {
            path: OsString::from_vec(mount.mountpoint.to_vec()).into(),
            reach: mount.reach,
            size: bytes("node_filesystem_size_bytes"),
            free: bytes("node_filesystem_free_bytes"),
            available: bytes("node_filesystem_avail_bytes"),
            files: count("node_filesystem_files"),
            files_free: count("node_filesystem_files_free"),
            read_only: state("node_filesystem_readonly"),
            failing: state("node_filesystem_device_error"),
        }
    }

    fn add_rows(&self, reply: Reply, out: &mut Rows) {
        match reply {
            Reply::Pending => {}
            Reply::Failing => out.push_whole(&self.failing, 1),
            Reply::Known(figures) => {
                out.push_whole(&self.size, figures.size);
                out.push_whole(&self.free, figures.free);
                out.push_whole(&self.available, figures.available);
                out.push_whole(&self.files, figures.files);
                out.push_whole(&self.files_free, figures.files_free);
                out.push_whole(&self.read_only, u64::from(figures.read_only));
                out.push_whole(&self.failing, 0);
            }
        }
    }
}

fn figures(path: &Path) -> io::Result<Figures> {
    let stat = statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(Figures {
        size: bytes(stat.f_blocks),
        free: bytes(stat.f_bfree),
        available: bytes(stat.f_bavail),
        files: stat.f_files,
        files_free: stat.f_ffree,
        read_only: stat.f_flag.contains(StatVfsMountFlags::RDONLY),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::sample::Number;
    use wire::time::Time;

    #[test]
    fn a_hung_server_is_reported_and_the_disk_beside_it_too() {
        let proc = tempfile::tempdir().expect("temporary directory");
        std::fs::create_dir(proc.path().join("self")).expect("created");
        let mounts = "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /home rw - nfs4 s:/home rw\n";
        std::fs::write(proc.path().join("self/mountinfo"), mounts).expect("written");
        let (hold, held) = std::sync::mpsc::sync_channel::<()>(0);
        let held = std::sync::Mutex::new(held);
        let ask: Statvfs = Arc::new(move |path| {
            if path == Path::new("/home") {
                // Blocks until the test ends.
                let _ = held.lock().expect("one asker").recv();
            }
            Ok(Figures { size: 4096, read_only: true, ..Figures::default() })
        });
        let (mut collector, mut rows) = (FileSystem::asking(proc.path(), ask), Rows::default());
        let mut sweep = |secs| {
            let now = Now { running: std::time::Duration::from_secs(secs), ..Now::default() };
            collector.collect(now, &mut rows).expect("the disk answers");
            rows.finish(Time::default())
        };
        let disk = [("device", "/dev/sda1"), ("fstype", "ext4"), ("mountpoint", "/")];
        let home = [("device", "s:/home"), ("fstype", "nfs4"), ("mountpoint", "/home")];
        for (secs, error) in [(0, None), (4, None), (6, Some(Number::Whole(1)))] {
            let table = sweep(secs);
            assert_eq!(table.get("node_filesystem_size_bytes", &disk), Some(Number::Whole(4096)));
            assert_eq!(table.get("node_filesystem_readonly", &disk), Some(Number::Whole(1)));
            assert_eq!(table.get("node_filesystem_device_error", &disk), Some(Number::Whole(0)));
            assert_eq!(table.get("node_filesystem_device_error", &home), error, "after {secs} s");
            assert_eq!(table.get("node_filesystem_size_bytes", &home), None);
        }
        drop(hold);
    }

    #[test]
    fn this_hosts_root_is_read() {
        let figures = figures(Path::new("/")).expect("every host has a root");
        assert!(figures.size > 0 && figures.free <= figures.size && figures.available <= figures.free);
        assert!(super::figures(Path::new("/no/such/place")).is_err());
    }
}
