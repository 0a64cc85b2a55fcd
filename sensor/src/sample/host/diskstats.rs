//! Disk I/O, from `/proc/diskstats`.
//!
//! Excluded, as in node_exporter by default: RAM and loop devices, floppies, and partitions (their disk is
//! reported).

use super::column::{Column, Raw};
use super::fields::{self, Malformed};
use super::metric_cache::MetricCache;
use super::proc_file::ProcFile;
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::Rows;
use std::path::Path;
use std::sync::Arc;
use wire::sample::Metric;

/// The columns after the device name; kernels before 4.18 have the first 11, before 5.5 the first 15.
const COLUMNS: [Column; 17] = [
    Column::counter("node_disk_reads_completed_total", "", Raw::Count),
    Column::counter("node_disk_reads_merged_total", "", Raw::Count),
    Column::counter("node_disk_read_bytes_total", "bytes", Raw::Sectors),
    Column::counter("node_disk_read_time_seconds_total", "seconds", Raw::Millis),
    Column::counter("node_disk_writes_completed_total", "", Raw::Count),
    Column::counter("node_disk_writes_merged_total", "", Raw::Count),
    Column::counter("node_disk_written_bytes_total", "bytes", Raw::Sectors),
    Column::counter("node_disk_write_time_seconds_total", "seconds", Raw::Millis),
    Column::gauge("node_disk_io_now", "", Raw::Count),
    Column::counter("node_disk_io_time_seconds_total", "seconds", Raw::Millis),
    Column::counter("node_disk_io_time_weighted_seconds_total", "seconds", Raw::Millis),
    Column::counter("node_disk_discards_completed_total", "", Raw::Count),
    Column::counter("node_disk_discards_merged_total", "", Raw::Count),
    Column::counter("node_disk_discarded_sectors_total", "", Raw::Count),
    Column::counter("node_disk_discard_time_seconds_total", "seconds", Raw::Millis),
    Column::counter("node_disk_flush_requests_total", "", Raw::Count),
    Column::counter("node_disk_flush_requests_time_seconds_total", "seconds", Raw::Millis),
];

/// Number of columns that every kernel has.
const COLUMNS_MIN: usize = 11;

/// Parsed line of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub device: &'a [u8],
    /// The numbers, in the order of the kernel.
    pub numbers: [u64; COLUMNS.len()],
    /// Count of the numbers in the line; the others are 0.
    pub len: usize,
}

/// Parses a line; `None` for an empty line and for an excluded device.
///
/// # Errors
/// If it is not two device numbers, a name and at least 11 numbers.
pub fn parse(line: &[u8]) -> Result<Option<Line<'_>>, Malformed> {
    let malformed = || Malformed::new("two device numbers, a name and at least 11 numbers", line);
    let mut fields = fields::fields(line);
    let Some(_major) = fields.next() else { return Ok(None) };
    let device = fields.nth(1).ok_or_else(malformed)?;
    if is_left_out(device) {
        return Ok(None);
    }
    let mut read = Line { device, numbers: [0; COLUMNS.len()], len: 0 };
    for (number, field) in read.numbers.iter_mut().zip(fields) {
        *number = fields::whole(field).ok_or_else(malformed)?;
        read.len += 1;
    }
    if read.len < COLUMNS_MIN { Err(malformed()) } else { Ok(Some(read)) }
}

fn is_left_out(device: &[u8]) -> bool {
    let Some(last_letter) = device.iter().rposition(|b| !b.is_ascii_digit()) else { return false };
    let (stem, digits) = device.split_at(last_letter + 1);
    if digits.is_empty() {
        return false;
    }
    match stem {
        b"ram" | b"zram" | b"loop" | b"fd" => true,
        // sda1, hda1, vda1, xvda1: one letter names the disk, the number its partition.
        [b'h' | b's' | b'v', b'd', disk] | [b'x', b'v', b'd', disk] => disk.is_ascii_lowercase(),
        // nvme0n1p2
        _ => is_nvme_disk_with_p(stem),
    }
}

/// Matches `nvme`, digits, `n`, digits, `p`.
fn is_nvme_disk_with_p(stem: &[u8]) -> bool {
    let numbers = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let Some(middle) = stem.strip_prefix(b"nvme").and_then(|rest| rest.strip_suffix(b"p")) else {
        return false;
    };
    let mut parts = middle.split(|b| *b == b'n');
    let (controller, namespace) = (parts.next(), parts.next());
    controller.is_some_and(numbers) && namespace.is_some_and(numbers) && parts.next().is_none()
}

/// Collector of disk I/O.
#[derive(Debug)]
pub struct DiskStats {
    file: ProcFile,
    devices: MetricCache<[Arc<Metric>; COLUMNS.len()]>,
}

impl DiskStats {
    /// Creates the collector; reads below `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> DiskStats {
        DiskStats { file: ProcFile::new(proc, "diskstats"), devices: MetricCache::default() }
    }
}

impl Collector for DiskStats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
        let DiskStats { file, devices } = self;
        let result = add_rows(file.read()?, devices, out);
        result.map_err(|malformed| file.malformed(malformed))
    }
}

fn add_rows(
    text: &[u8],
    devices: &mut MetricCache<[Arc<Metric>; COLUMNS.len()]>,
    out: &mut Rows,
) -> Result<(), Malformed> {
    devices.begin();
    for line in fields::lines(text) {
        let Some(line) = parse(line)? else { continue };
        let identity = || {
            let device = String::from_utf8_lossy(line.device);
            COLUMNS.map(|column| column.metric(&[("device", &device)]))
        };
        let Some(metrics) = devices.next(line.device, identity) else { continue };
        for ((metric, column), number) in metrics.iter().zip(&COLUMNS).zip(line.numbers).take(line.len) {
            out.push(metric, column.raw.value(number));
        }
    }
    devices.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_reported_and_their_parts_are_not() {
        for result in
            ["sda", "vda", "xvdb", "nvme0n1", "dm-0", "md127", "mmcblk0", "sr0", "sdaa1", "nvme0n1p", "zd0"]
        {
            assert!(!is_left_out(result.as_bytes()), "{result}");
        }
        for left_out in ["ram0", "zram1", "loop12", "fd0", "sda1", "vdb15", "xvda2", "hdc3", "nvme10n1p2"] {
            assert!(is_left_out(left_out.as_bytes()), "{left_out}");
        }
    }

    #[test]
    fn old_and_new_kernels_are_read() {
        let line = |text: &'static str| parse(text.as_bytes());
        let old = line("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11").expect("well formed").expect("a disk");
        assert_eq!(
            (old.device, old.len, &old.numbers[..11]),
            (&b"sda"[..], 11, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11][..])
        );
        let new = line("254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19").expect("well formed");
        assert_eq!(new.expect("a disk").len, 17, "later columns are passed over");
        assert_eq!(line(""), Ok(None));
        assert_eq!(line("7 0 loop0 0"), Ok(None));
        for bad in ["8 0", "8 0 sda 1 2 3", "8 0 sda 1 2 3 4 5 6 7 8 9 10 x"] {
            assert!(line(bad).is_err(), "{bad}");
        }
    }
}
