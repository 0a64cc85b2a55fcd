//! Host collectors over a fixture of `/proc`, over this host's own `/proc`, and over damaged text.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use sensor::sample::collector::{Collectors, Now};
use sensor::sample::host::{self, *};
use sensor::sample::table::Table;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wire::sample::{Number, Semantics};
use wire::time::Time;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/proc");

fn sweep(collectors: &mut Collectors) -> Table {
    collectors.sweep(
        Now { calendar: Time::from_micros(1_418_190_000_250_000), ..Now::default() },
        Duration::default,
    )
}

fn failed(table: &Table) -> Vec<String> {
    let success = |row: &(&Arc<wire::sample::Metric>, Number)| {
        row.0.name == "node_scrape_collector_success" && row.1 == Number::Whole(0)
    };
    table.rows().filter(success).map(|(metric, _)| metric.labels[0].1.to_string()).collect()
}

#[test]
fn the_fixture_gives_these_figures() {
    let mut collectors = Collectors::new(host::collectors(Path::new(FIXTURE)));
    let table = sweep(&mut collectors);
    assert_eq!(failed(&table), Vec::<String>::new());
    let check = |name: &str, labels: &[(&str, &str)], value: Number| {
        assert_eq!(table.get(name, labels), Some(value), "{name} {labels:?}");
    };
    let (whole, real) = (Number::Whole, Number::Real);
    check("node_cpu_seconds_total", &[("cpu", "0"), ("mode", "user")], real(444.9));
    check("node_cpu_seconds_total", &[("cpu", "1"), ("mode", "iowait")], real(5.91));
    check("node_cpu_seconds_total", &[("cpu", "0"), ("mode", "steal")], real(0.02));
    check("node_cpu_guest_seconds_total", &[("cpu", "1"), ("mode", "nice")], real(0.3));
    check("node_intr_total", &[], whole(8_885_917));
    check("node_context_switches_total", &[], whole(38_014_093));
    check("node_boot_time_seconds", &[], whole(1_418_183_276));
    check("node_forks_total", &[], whole(26_442));
    check("node_procs_running", &[], whole(2));
    check("node_procs_blocked", &[], whole(1));
    check("node_load1", &[], real(0.21));
    check("node_load15", &[], real(0.39));
    check("node_memory_MemTotal_bytes", &[], whole(16_427_184_128));
    check("node_memory_Active_anon_bytes", &[], whole(1_068_564 * 1024));
    check("node_memory_HugePages_Total", &[], whole(3));
    check("node_vmstat_pgfault", &[], whole(2_320_168_809));
    check("node_vmstat_oom_kill", &[], whole(2));
    check("node_disk_read_bytes_total", &[("device", "sda")], whole(1_003_346_126 * 512));
    check("node_disk_io_time_seconds_total", &[("device", "sda")], real(9653.88));
    check("node_disk_io_now", &[("device", "nvme0n1")], whole(3));
    check("node_disk_discarded_sectors_total", &[("device", "nvme0n1")], whole(57_382));
    check("node_disk_flush_requests_time_seconds_total", &[("device", "nvme0n1")], real(0.006));
    check("node_disk_writes_completed_total", &[("device", "dm-0")], whole(39_231_014));
    check("node_network_receive_bytes_total", &[("device", "eth0")], whole(u64::MAX));
    check("node_network_transmit_bytes_total", &[("device", "eth0")], whole(9_007_199_254_740_993));
    check("node_network_transmit_compressed_total", &[("device", "eth0")], whole(12));
    check("node_pressure_cpu_waiting_seconds_total", &[], real(14.036_781));
    check("node_pressure_io_stalled_seconds_total", &[], real(159.229_614));
    check("node_pressure_memory_waiting_seconds_total", &[], real(0.000_005));
    check("node_time_seconds", &[], real(1_418_190_000.25));
    check("node_uptime_seconds", &[], real(3508.61));
    let root = [("device", "/dev/sda1"), ("fstype", "ext4"), ("mountpoint", "/")];
    check("node_filesystem_device_error", &root, whole(0));
    let gone = [("device", "/dev/sdb9"), ("fstype", "xfs"), ("mountpoint", "/no/such/place/on/this/host")];
    check("node_filesystem_device_error", &gone, whole(1));
    for (name, labels) in [
        ("node_disk_io_now", ("device", "sda1")),
        ("node_disk_io_now", ("device", "loop0")),
        ("node_disk_flush_requests_total", ("device", "sda")),
        ("node_filesystem_size_bytes", ("mountpoint", "/dev/shm")),
    ] {
        let is_present = table.rows().any(|(metric, _)| {
            metric.name == name && metric.labels.iter().any(|(k, v)| (k.as_str(), v.as_str()) == labels)
        });
        assert!(!is_present, "{name} {labels:?}");
    }
    for absent in ["node_pressure_cpu_stalled_seconds_total", "node_pressure_irq_stalled_seconds_total"] {
        assert_eq!(table.get(absent, &[]), None);
    }
}

#[test]
fn names_follow_the_rules_and_no_metric_is_reported_twice() {
    let table = sweep(&mut Collectors::new(host::collectors(Path::new(FIXTURE))));
    let mut seen = std::collections::BTreeSet::new();
    for (metric, value) in table.rows() {
        assert!(metric.name.starts_with("node_"), "{metric:?}");
        assert!(metric.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{metric:?}");
        assert!(metric.labels.is_sorted(), "{metric:?}");
        assert!(seen.insert(metric.clone()), "{metric:?} is reported twice");
        for unit in ["seconds", "bytes"] {
            let in_name = metric.name.split('_').any(|word| word == unit);
            assert_eq!(in_name, metric.unit == unit, "{metric:?}");
        }
        if metric.name.ends_with("_total") {
            assert_eq!(metric.semantics, Semantics::Counter, "{metric:?}");
        }
        if let Number::Real(real) = value {
            assert!(real.is_finite() && real >= 0.0, "{metric:?}");
        }
    }
    assert!(seen.len() > 150, "{} metrics", seen.len());
}

#[test]
fn a_host_without_proc_loses_only_what_is_read_there() {
    let nowhere = tempfile::tempdir().unwrap();
    let table = sweep(&mut Collectors::new(host::collectors(nowhere.path())));
    let mut lost = failed(&table);
    lost.sort();
    let expected =
        ["diskstats", "filesystem", "loadavg", "meminfo", "netdev", "pressure", "stat", "time", "vmstat"];
    assert_eq!(lost, expected);
    assert!(table.rows().any(|(metric, _)| metric.name == "node_uname_info"));
}

#[test]
fn a_damaged_file_fails_its_collector_alone_and_heals() {
    let proc = tempfile::tempdir().unwrap();
    for (file, text) in [("loadavg", "0.1 0.2 0.3 1/2 3\n"), ("uptime", "5.00 6.00\n")] {
        std::fs::write(proc.path().join(file), text).unwrap();
    }
    let mut collectors = Collectors::new(vec![
        Box::new(loadavg::LoadAverage::new(proc.path())),
        Box::new(time::Clocks::new(proc.path())),
    ]);
    let load = |table: &Table| table.get("node_load1", &[]);
    assert_eq!(load(&sweep(&mut collectors)), Some(Number::Real(0.1)));
    std::fs::write(proc.path().join("loadavg"), "garbage").unwrap();
    let table = sweep(&mut collectors);
    assert_eq!((failed(&table), load(&table)), (vec!["loadavg".to_owned()], None));
    assert_eq!(table.get("node_uptime_seconds", &[]), Some(Number::Real(5.0)));
    std::fs::write(proc.path().join("loadavg"), "0.4 0.2 0.3 1/2 3\n").unwrap();
    assert_eq!(load(&sweep(&mut collectors)), Some(Number::Real(0.4)));
}

#[test]
fn sweeps_of_a_quiet_host_share_their_metrics() {
    let mut collectors = Collectors::new(host::collectors(Path::new(FIXTURE)));
    let (first, second) = (sweep(&mut collectors), sweep(&mut collectors));
    assert!(Arc::ptr_eq(first.metrics(), second.metrics()));
}

/// The values of this host are consistent over time and with another reader.
#[test]
fn this_host_is_read_as_others_read_it() {
    let mut collectors = Collectors::new(host::collectors(Path::new(host::PROC)));
    let first = sweep(&mut collectors);
    let cpu_secs = |table: &Table| -> f64 {
        table.rows().filter(|(m, _)| m.name == "node_cpu_seconds_total").map(|(_, v)| v.as_f64()).sum()
    };
    // CPU time advances in ticks: this loop waits for some, and is busy so that it advances.
    let mut second = sweep(&mut collectors);
    for _ in 0..100_000 {
        if cpu_secs(&second) > cpu_secs(&first) {
            break;
        }
        second = sweep(&mut collectors);
    }
    assert!(cpu_secs(&second) > cpu_secs(&first), "the clock of the CPUs stands still");
    let mut counters = 0;
    for (metric, after) in second.rows().filter(|(metric, _)| metric.semantics == Semantics::Counter) {
        if let Some((_, before)) = first.rows().find(|(known, _)| *known == metric) {
            assert!(after.as_f64() >= before.as_f64(), "{metric:?} fell from {before:?} to {after:?}");
            counters += 1;
        }
    }
    assert!(counters > 50, "{counters} counters");
    let facts = facts::Facts::read();
    assert_eq!(second.get("node_memory_MemTotal_bytes", &[]), Some(Number::Whole(facts.memory_bytes)));
    let cores = second.rows().filter(|(m, _)| {
        m.name == "node_cpu_seconds_total" && m.labels.iter().any(|(_, mode)| mode == "idle")
    });
    assert_eq!(cores.count(), facts.cpus);
    let boot = second.get("node_boot_time_seconds", &[]).unwrap().as_f64();
    assert!((boot - facts.boot_secs as f64).abs() <= 2.0, "{boot} and {}", facts.boot_secs);
    let disk = rustix::fs::statvfs("/").unwrap();
    let size = Number::Whole(disk.f_blocks * disk.f_frsize);
    let root = second.rows().find(|(metric, _)| {
        metric.name == "node_filesystem_size_bytes"
            && metric.labels.iter().any(|(k, v)| k == "mountpoint" && v == "/")
    });
    // In a container the type of the root file system is excluded.
    if let Some((_, value)) = root {
        assert_eq!(value, size);
    }
}

/// Runs every parser over the same bytes; none may panic.
fn parse_all(text: &[u8]) {
    for line in fields::lines(text) {
        let _ = cpu::parse(line);
        let _ = stat::parse(line);
        let _ = meminfo::parse(line);
        let _ = vmstat::parse(line);
        let _ = diskstats::parse(line);
        let _ = netdev::parse(line);
    }
    let _ = loadavg::parse(text);
    let _ = mounts::parse(text);
    let _ = pressure::parse(text);
    let _ = time::parse(text);
}

fn fixture_texts() -> Vec<Vec<u8>> {
    let files = [
        "stat",
        "loadavg",
        "uptime",
        "meminfo",
        "vmstat",
        "diskstats",
        "net/dev",
        "pressure/cpu",
        "pressure/io",
        "self/mountinfo",
    ];
    files.iter().map(|file| std::fs::read(Path::new(FIXTURE).join(file)).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_parser_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
        parse_all(&text);
    }

    #[test]
    fn no_words_make_a_parser_panic(
        text in "((cpu|cpu0|intr|some|full|total=|eth0:|sda|MemTotal:|kB|-|/|\\\\[0-7]{1,3}|[0-9]{1,25}|\\|)[ \n\t]?){0,40}"
    ) {
        parse_all(text.as_bytes());
    }

    #[test]
    fn no_damage_makes_a_parser_panic(
        which in 0..10usize,
        cut in any::<prop::sample::Index>(),
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut text = fixture_texts().swap_remove(which);
        text.truncate(cut.index(text.len()) + 1);
        for (place, byte) in places {
            let at = place.index(text.len());
            text[at] = byte;
        }
        parse_all(&text);
    }
}
