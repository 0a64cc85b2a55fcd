//! Network traffic by interface, from `/proc/net/dev`.
//!
//! Rule: one series per interface and column, in whole numbers as the kernel counts them.

use super::column::{Column, Raw};
use super::fields::{self, Malformed};
use super::metric_cache::MetricCache;
use super::proc_file::ProcFile;
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::Rows;
use std::path::Path;
use std::sync::Arc;
use wire::sample::Metric;

const COLUMNS: [Column; 16] = [
    Column::counter("node_network_receive_bytes_total", "bytes", Raw::Count),
    Column::counter("node_network_receive_packets_total", "", Raw::Count),
    Column::counter("node_network_receive_errs_total", "", Raw::Count),
    Column::counter("node_network_receive_drop_total", "", Raw::Count),
    Column::counter("node_network_receive_fifo_total", "", Raw::Count),
    Column::counter("node_network_receive_frame_total", "", Raw::Count),
    Column::counter("node_network_receive_compressed_total", "", Raw::Count),
    Column::counter("node_network_receive_multicast_total", "", Raw::Count),
    Column::counter("node_network_transmit_bytes_total", "bytes", Raw::Count),
    Column::counter("node_network_transmit_packets_total", "", Raw::Count),
    Column::counter("node_network_transmit_errs_total", "", Raw::Count),
    Column::counter("node_network_transmit_drop_total", "", Raw::Count),
    Column::counter("node_network_transmit_fifo_total", "", Raw::Count),
    Column::counter("node_network_transmit_colls_total", "", Raw::Count),
    Column::counter("node_network_transmit_carrier_total", "", Raw::Count),
    Column::counter("node_network_transmit_compressed_total", "", Raw::Count),
];

/// The name of an interface and its numbers, in the order of the kernel.
pub type Line<'a> = (&'a [u8], [u64; COLUMNS.len()]);

/// Parses a line; `None` for the two header lines and for an empty line.
///
/// # Errors
/// If it is not a name, a colon and 16 numbers.
pub fn parse(line: &[u8]) -> Result<Option<Line<'_>>, Malformed> {
    if line.is_empty() || memchr::memchr(b'|', line).is_some() {
        return Ok(None);
    }
    let malformed = || Malformed::new("an interface, a colon and 16 numbers", line);
    // The last colon: an alias such as `eth0:1` has one in its name.
    let colon = memchr::memrchr(b':', line).ok_or_else(malformed)?;
    let device = line[..colon].trim_ascii();
    let numbers = fields::wholes(&mut fields::fields(&line[colon + 1..])).ok_or_else(malformed)?;
    if device.is_empty() { Err(malformed()) } else { Ok(Some((device, numbers))) }
}

/// Collector of network traffic.
#[derive(Debug)]
pub struct NetDev {
    file: ProcFile,
    devices: MetricCache<[Arc<Metric>; COLUMNS.len()]>,
}

impl NetDev {
    /// Creates the collector; reads below `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> NetDev {
        NetDev { file: ProcFile::new(proc, "net/dev"), devices: MetricCache::default() }
    }
}

impl Collector for NetDev {
    fn name(&self) -> &'static str {
        "netdev"
    }

    fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
        let NetDev { file, devices } = self;
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
        let Some((device, numbers)) = parse(line)? else { continue };
        let identity = || {
            let device = String::from_utf8_lossy(device);
            COLUMNS.map(|column| column.metric(&[("device", &device)]))
        };
        let Some(metrics) = devices.next(device, identity) else { continue };
        for (metric, number) in metrics.iter().zip(numbers) {
            out.push_whole(metric, number);
        }
    }
    devices.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_read() {
        let numbers: [u64; 16] = std::array::from_fn(|n| n as u64);
        for (line, device) in [
            ("  eth0: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "eth0"),
            ("eth0:1:0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "eth0:1"),
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(Some((device.as_bytes(), numbers))), "{line}");
        }
        for head in ["Inter-|   Receive   |  Transmit", " face |bytes    packets|bytes", ""] {
            assert_eq!(parse(head.as_bytes()), Ok(None), "{head}");
        }
        for bad in ["eth0 1 2 3", "eth0: 1 2 3", ": 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "eth0: x"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
