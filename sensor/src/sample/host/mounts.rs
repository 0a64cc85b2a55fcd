//! Mount table: the mounted file systems, from `/proc/self/mountinfo`, and how each can be queried.
//!
//! Pure. Excluded, as in node_exporter by default: file systems without storage of their own, and the
//! internal mounts of containers. Also excluded: FUSE file systems that a program of an ordinary user serves.
//! Not here: querying them (`filesystem`, `remote_mounts`).

use super::fields::{self, Malformed};
use std::borrow::Cow;

/// File system types without storage of their own.
const TYPES_LEFT_OUT: [&[u8]; 26] = [
    b"autofs",
    b"binfmt_misc",
    b"bpf",
    b"cgroup",
    b"cgroup2",
    b"configfs",
    b"debugfs",
    b"devpts",
    b"devtmpfs",
    b"fusectl",
    b"hugetlbfs",
    b"iso9660",
    b"mqueue",
    b"nsfs",
    b"overlay",
    b"proc",
    b"procfs",
    b"pstore",
    b"rpc_pipefs",
    b"securityfs",
    b"selinuxfs",
    b"squashfs",
    b"erofs",
    b"sysfs",
    b"tracefs",
    b"efivarfs",
];

/// Folders that are excluded with everything below them.
const FOLDERS_LEFT_OUT: [&[u8]; 3] = [b"/dev", b"/proc", b"/sys"];

/// Folders that are reported themselves, but with everything below them excluded.
const PARENTS_LEFT_OUT: [&[u8]; 3] =
    [b"/run/credentials", b"/var/lib/docker", b"/var/lib/containers/storage"];

/// File system types whose answer comes from this host's own memory or disks. With every other type (network,
/// FUSE, and future ones) `statvfs` may block forever.
const TYPES_LOCAL: [&[u8]; 18] = [
    b"ext2",
    b"ext3",
    b"ext4",
    b"xfs",
    b"btrfs",
    b"bcachefs",
    b"f2fs",
    b"jfs",
    b"reiserfs",
    b"zfs",
    b"vfat",
    b"exfat",
    b"ntfs3",
    b"udf",
    b"hfsplus",
    b"tmpfs",
    b"ramfs",
    b"rootfs",
];

/// Whether `statvfs` on a file system may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It returns at once.
    Local,
    /// It may block forever.
    Remote,
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Device, or remote source of a network file system.
    pub device: Cow<'a, [u8]>,
    pub mountpoint: Cow<'a, [u8]>,
    pub fstype: &'a [u8],
    pub reach: Reach,
}

/// Parses the table into the reported mounts. Of several mounts at one place the last counts, since it hides
/// the others.
///
/// # Errors
/// If a line is not a mount.
pub fn parse(text: &[u8]) -> Result<Vec<Mount<'_>>, Malformed> {
    let mut mounts: Vec<Mount<'_>> = Vec::new();
    for line in fields::lines(text) {
        let (mountpoint, fstype, device, options) = read(line).ok_or_else(|| {
            Malformed::new("a mount: numbers, root, place, options, '-', type and device", line)
        })?;
        // Even an excluded mount hides what was mounted at the same place before.
        mounts.retain(|earlier| earlier.mountpoint != mountpoint);
        if is_included(&mountpoint, fstype) && !is_a_user_s(fstype, options) {
            let reach = if is_local(fstype) { Reach::Local } else { Reach::Remote };
            mounts.push(Mount { device, mountpoint, fstype, reach });
        }
    }
    Ok(mounts)
}

/// Any line of the table, also of an excluded mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Number of the mount (`mnt_id` of proc_pid_fdinfo(5)).
    pub id: u64,
    pub mountpoint: Cow<'a, [u8]>,
    pub fstype: &'a [u8],
}

/// Iterates over all lines that are mounts, in the table's order: of several at one place the last hides the
/// others.
pub fn table(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    fields::lines(text).filter_map(|line| {
        let id = str::from_utf8(fields::fields(line).next()?).ok()?.parse().ok()?;
        let (mountpoint, fstype, ..) = read(line)?;
        Some(Line { id, mountpoint, fstype })
    })
}

/// Whether a file system of this type answers at once, from this host's own memory or disks.
#[must_use]
pub fn is_local(fstype: &[u8]) -> bool {
    TYPES_LOCAL.contains(&fstype)
}

type Parts<'a> = (Cow<'a, [u8]>, &'a [u8], Cow<'a, [u8]>, &'a [u8]);

fn read(line: &[u8]) -> Option<Parts<'_>> {
    let mut fields = fields::fields(line);
    let mountpoint = fields.nth(4)?;
    // Optional fields follow the options; a single dash ends them.
    fields.find(|field| *field == b"-")?;
    let (fstype, device) = (fields.next()?, fields.next()?);
    Some((unescaped(mountpoint), fstype, unescaped(device), fields.next().unwrap_or_default()))
}

/// Whether a program of an ordinary user serves it (option `user_id` of mount.fuse(8)): it may never answer,
/// and a thread that waits for it cannot be ended.
fn is_a_user_s(fstype: &[u8], options: &[u8]) -> bool {
    let is_fuse = fstype.starts_with(b"fuse.") || [&b"fuse"[..], b"fuseblk"].contains(&fstype);
    let mut users = options.split(|byte| *byte == b',').filter_map(|option| option.strip_prefix(b"user_id="));
    is_fuse && users.any(|user| user != b"0")
}

fn is_included(mountpoint: &[u8], fstype: &[u8]) -> bool {
    let below = |folder: &&[u8]| mountpoint.strip_prefix(*folder).is_some_and(|rest| rest.starts_with(b"/"));
    let within = |folder: &&[u8]| mountpoint == *folder || below(folder);
    !TYPES_LEFT_OUT.contains(&fstype)
        && !FOLDERS_LEFT_OUT.iter().any(within)
        && !PARENTS_LEFT_OUT.iter().any(below)
}

/// Decodes blanks and backslashes, which the kernel writes as `\040`: a backslash and three octal digits.
fn unescaped(field: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', field).is_none() {
        return Cow::Borrowed(field);
    }
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] if byte == b'\\' => {
                plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(text: &str) -> Vec<(String, String, String, Reach)> {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mounts = parse(text.as_bytes()).expect("well formed");
        let one = |m: &Mount<'_>| (shown(&m.device), shown(&m.mountpoint), shown(m.fstype), m.reach);
        mounts.iter().map(one).collect()
    }

    fn mount(device: &str, mountpoint: &str, fstype: &str, reach: Reach) -> (String, String, String, Reach) {
        (device.to_owned(), mountpoint.to_owned(), fstype.to_owned(), reach)
    }

    #[test]
    fn storage_is_reported_and_the_rest_left_out() {
        let text = "\
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw
22 27 0:21 / /proc rw - proc proc rw
25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw
30 27 0:30 / /run rw - tmpfs tmpfs rw
31 27 0:31 / /home rw - nfs4 server:/home rw,addr=10.0.0.1
32 27 0:32 / /mnt/a\\040b rw - fuse.sshfs me@x:/ rw,user_id=0,group_id=0
36 27 0:36 / /home/ann/far rw - fuse.sshfs ann@x:/ rw,user_id=1000,group_id=1000
33 27 0:33 / /var/lib/docker/overlay2/x rw - ext4 /dev/vdb rw
34 27 0:34 / /var/lib/docker rw - ext4 /dev/vdc rw
35 27 0:35 / /devices rw - xfs /dev/vdd rw
";
        assert_eq!(
            mounts(text),
            [
                mount("/dev/vda", "/", "ext4", Reach::Local),
                mount("tmpfs", "/run", "tmpfs", Reach::Local),
                mount("server:/home", "/home", "nfs4", Reach::Remote),
                mount("me@x:/", "/mnt/a b", "fuse.sshfs", Reach::Remote),
                mount("/dev/vdc", "/var/lib/docker", "ext4", Reach::Local),
                mount("/dev/vdd", "/devices", "xfs", Reach::Local),
            ]
        );
    }

    #[test]
    fn what_is_mounted_over_another_hides_it() {
        let text = "\
1 1 8:1 / /data rw - ext4 /dev/sda1 rw
2 1 8:2 / /data rw - xfs /dev/sdb1 rw
3 1 8:3 / /a rw - ext4 /dev/sdc1 rw
4 1 0:9 / /a rw - autofs systemd-1 rw
";
        assert_eq!(mounts(text), [mount("/dev/sdb1", "/data", "xfs", Reach::Local)]);
    }

    #[test]
    fn escapes_are_undone_and_odd_ones_kept() {
        for (escaped, plain) in
            [(r"a\040b", "a b"), (r"\134", r"\"), (r"x\04", r"x\04"), (r"\999", r"\999"), (r"\", r"\")]
        {
            assert_eq!(&*unescaped(escaped.as_bytes()), plain.as_bytes(), "{escaped}");
        }
    }

    #[test]
    fn what_is_no_mount_is_refused() {
        for bad in ["1 2 3", "27 1 254:0 / / rw,relatime ext4 /dev/vda rw", "27 1 254:0 / / rw - ext4", "x"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
