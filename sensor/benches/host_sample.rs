//! Benchmark of host sampling: the median of a sweep, the part of each collector, and the share of a core at
//! 1 Hz and 10 Hz; beside it a scrape of `prometheus-node-exporter`, if it is installed.
//!
//! Run with `cargo bench -p sensor --bench host_sample`. The exporter is started on loopback with the same
//! collectors, scraped over one persistent connection, and stopped.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use sensor::sample::collector::{Collectors, Now};
use sensor::sample::host;
use sensor::sample::sampler::Sampler;
use sensor::sample::schedule::Rate;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const SWEEPS: usize = 2000;
const SCRAPES: usize = 200;
const SHARE_TIME: Duration = Duration::from_secs(20);

fn main() {
    sweep_cost();
    let before = rss_kib();
    for hz in [1.0, 10.0] {
        share(hz);
    }
    println!("RSS {} KiB before sampling, {} KiB after", before, rss_kib());
    exporter();
}

fn clock(id: rustix::time::ClockId) -> Duration {
    let now = rustix::time::clock_gettime(id);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}

fn running() -> Duration {
    clock(rustix::time::ClockId::Monotonic)
}

fn cpu_time() -> Duration {
    clock(rustix::time::ClockId::ProcessCPUTime)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn sweep_cost() {
    let mut collectors = Collectors::new(host::collectors(Path::new(host::PROC)));
    let mut times = Vec::with_capacity(SWEEPS);
    let mut last = None;
    for _ in 0..SWEEPS {
        let began = running();
        last = Some(collectors.sweep(Now { running: began, ..Now::default() }, running));
        times.push(running() - began);
    }
    times.sort_unstable();
    let table = last.unwrap();
    println!(
        "sweep of {} values: median {:.1} µs, p99 {:.1} µs",
        table.values().len(),
        micros(times[SWEEPS / 2]),
        micros(times[SWEEPS * 99 / 100])
    );
    for (metric, value) in table.rows() {
        if metric.name == "node_scrape_collector_duration_seconds" {
            println!("  {:<12} {:>7.1} µs", metric.labels[0].1, value.as_f64() * 1e6);
        }
    }
}

fn share(hz: f64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sampler =
        Sampler::new(Collectors::new(host::collectors(Path::new(host::PROC))), Rate::from_hz(hz).unwrap());
    let handle = sampler.handle();
    let shutdown = CancellationToken::new();
    let (cpu, began) = (cpu_time(), running());
    runtime.block_on(async {
        let stop = shutdown.clone();
        let timer = async move {
            tokio::time::sleep(SHARE_TIME).await;
            stop.cancel();
        };
        let (outcome, ()) = tokio::join!(sampler.run(shutdown), timer);
        outcome.unwrap();
    });
    let (cpu, took) = (cpu_time() - cpu, running() - began);
    let counts = handle.counts();
    println!(
        "at {hz} Hz: {:.3} % of a core ({:.1} µs a sweep with waking and publishing); {} sweeps, {} slipped",
        100.0 * cpu.as_secs_f64() / took.as_secs_f64(),
        micros(cpu) / counts.sweeps_total as f64,
        counts.sweeps_total,
        counts.slipped_total
    );
}

fn rss_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn exporter() {
    let ours = [
        "stat",
        "cpu",
        "loadavg",
        "meminfo",
        "vmstat",
        "diskstats",
        "filesystem",
        "netdev",
        "pressure",
        "time",
        "uname",
    ];
    let same: Vec<String> = std::iter::once("--collector.disable-defaults".to_owned())
        .chain(ours.map(|name| format!("--collector.{name}")))
        .collect();
    for (what, flags) in [("the same collectors", same), ("its default collectors", Vec::new())] {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let Some(mut child) = start_exporter(port, &flags) else {
            println!("prometheus-node-exporter: not installed");
            return;
        };
        scrape_cost(what, port, &child);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[allow(clippy::disallowed_methods)] // A benchmark compares with another program.
fn start_exporter(port: u16, flags: &[String]) -> Option<Child> {
    std::process::Command::new("prometheus-node-exporter")
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .args(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

fn scrape_cost(what: &str, port: u16, child: &Child) {
    let Some(stream) = connect(port) else {
        println!("prometheus-node-exporter with {what}: does not answer");
        return;
    };
    let mut stream = BufReader::new(stream);
    let mut lines = scrape(&mut stream);
    let cpu = exporter_cpu(child);
    let mut times = Vec::new();
    for _ in 0..SCRAPES {
        let began = running();
        lines = scrape(&mut stream);
        times.push(running() - began);
    }
    times.sort_unstable();
    let cpu = micros(exporter_cpu(child) - cpu) / SCRAPES as f64;
    println!(
        "prometheus-node-exporter, {what}: {lines} values, {cpu:.0} µs of CPU a scrape ({:.3} % of a core at \
         1 Hz), median answer {:.0} µs, RSS {} KiB",
        cpu / 1e4,
        micros(times[SCRAPES / 2]),
        exporter_rss_kib(child)
    );
}

fn connect(port: u16) -> Option<TcpStream> {
    let deadline = running() + Duration::from_secs(10);
    while running() < deadline {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            return Some(stream);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// Scrapes once as Prometheus does; returns the number of values.
fn scrape(stream: &mut BufReader<TcpStream>) -> usize {
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\n\r\n";
    stream.get_mut().write_all(request).unwrap();
    let (mut length, mut chunked, mut line) = (0, false, String::new());
    loop {
        line.clear();
        stream.read_line(&mut line).unwrap();
        let head = line.trim().to_ascii_lowercase();
        if let Some(value) = head.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        chunked |= head == "transfer-encoding: chunked";
        if head.is_empty() {
            break;
        }
    }
    let mut body = Vec::new();
    loop {
        if chunked {
            line.clear();
            stream.read_line(&mut line).unwrap();
            length = usize::from_str_radix(line.trim(), 16).unwrap();
        }
        let at = body.len();
        body.resize(at + length, 0);
        stream.read_exact(&mut body[at..]).unwrap();
        if !chunked {
            break;
        }
        line.clear();
        stream.read_line(&mut line).unwrap();
        if length == 0 {
            break;
        }
    }
    body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#').count()
}

/// CPU time of all threads of the exporter.
fn exporter_cpu(child: &Child) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let nanos = |task: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(tasks.filter_map(nanos).sum())
}

fn exporter_rss_kib(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
