//! Cost of the history in its own files, and in key-value stores that take the same bytes.
//!
//! ```sh
//! cargo run --release -- RECORDING [HOURS] [ROUNDS] [KILLS] [LOADS] [FOLDER]     24 3 20 loaded,idle target/data
//! ENGINES=files,redb cargo run --release -- RECORDING     # only these
//! cargo run --release -- trace RECORDING HOURS loaded FILE -     # only what there is to store
//! ```
//! The recording has the format of `../series.rs`. At first the store writes it once, and its blocks and the newest samples of
//! every ten seconds are noted, byte by byte; then each engine stores them in a process of its own, as fast as it can:
//! the store through its writer, the others a key and a value for each. A block of samples is made durable, the rest
//! is handed to the kernel; redb has nothing between fsync and memory, so `redb` syncs each commit, and `redb-lazy` only blocks.
//! After every 30 s of the recording all files are synced, which is what the kernel does in real time; so a page
//! that is changed again later counts again. The folder must be on a disk.

mod files;
mod kv;
mod recording;
mod trace;

use recording::Recording;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trace::Event;

/// The engines.
const ENGINES: [&str; 5] = ["files", "redb", "redb-lazy", "fjall", "fjall-small"];

/// Flushes, of ten seconds each, after which the kernel writes pages: `vm.dirty_expire_centisecs`.
const WRITEBACK_EVERY: u64 = 3;

/// Length of a run that is killed, should it come to its end.
const KILLED_HOURS: f64 = 12.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["trace", inputs @ ..] => {
            let inputs = Inputs::parse(inputs);
            println!("{}", trace::write(&inputs.read(), &inputs.trace));
        }
        ["store", engine, inputs @ ..] => store(engine, &Inputs::parse(inputs)),
        ["reopen", engine, inputs @ ..] => reopen(engine, &Inputs::parse(inputs)),
        ["append", engine, inputs @ ..] => append(engine, &Inputs::parse(inputs)),
        ["check", engine, acknowledged, inputs @ ..] => {
            check(engine, acknowledged.parse().expect("a number"), &Inputs::parse(inputs));
        }
        [recording, rest @ ..] => {
            let number = |at: usize, default: f64| {
                rest.get(at).map_or(default, |text: &&str| text.parse().expect("a number"))
            };
            let (rounds, kills) = (number(1, 3.0) as usize, number(2, 20.0) as usize);
            let folder = PathBuf::from(rest.get(4).unwrap_or(&"target/data"));
            std::fs::create_dir_all(&folder).expect("a folder");
            for load in rest.get(3).unwrap_or(&"loaded,idle").split(',') {
                let mut inputs = Inputs {
                    recording: recording.into(),
                    hours: number(0, 24.0),
                    is_idle: load == "idle",
                    trace: folder.join("trace"),
                    folder: folder.join("stored"),
                };
                println!("\n{load}");
                compare(&inputs, rounds);
                if !inputs.is_idle && kills > 0 {
                    inputs.hours = KILLED_HOURS;
                    trace::write(&inputs.read(), &inputs.trace);
                    engines().iter().for_each(|engine| kill(engine, &inputs, kills));
                }
            }
            clear(&folder);
        }
        [] => println!("no recording is named; see the head of this program"),
    }
}

/// What a process stores, and where.
struct Inputs {
    recording: PathBuf,
    hours: f64,
    is_idle: bool,
    trace: PathBuf,
    folder: PathBuf,
}

impl Inputs {
    fn parse(parts: &[&str]) -> Inputs {
        let [recording, hours, load, trace, folder] = parts else { panic!("five arguments") };
        Inputs {
            recording: recording.into(),
            hours: hours.parse().expect("a number"),
            is_idle: *load == "idle",
            trace: trace.into(),
            folder: folder.into(),
        }
    }

    fn arguments(&self) -> [String; 5] {
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        let load = if self.is_idle { "idle" } else { "loaded" };
        let folder = text(&self.folder);
        [text(&self.recording), self.hours.to_string(), load.to_owned(), text(&self.trace), folder]
    }

    fn read(&self) -> Recording {
        Recording::read(&self.recording, self.hours, self.is_idle)
    }
}

/// Stores the same with every engine, and prints what each costs.
fn compare(inputs: &Inputs, rounds: usize) {
    if rounds == 0 {
        return;
    }
    let totals = trace::write(&inputs.read(), &inputs.trace);
    println!("{totals}");
    let blocks: u64 = totals.blocks.iter().sum();
    for engine in engines() {
        let engine = engine.as_str();
        let mut figures: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for _ in 0..rounds {
            clear(&inputs.folder);
            for what in ["store", "reopen"] {
                let output = this().arg(what).arg(engine).args(inputs.arguments()).output().expect("run");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                for line in String::from_utf8_lossy(&output.stdout).lines() {
                    let (name, value) = line.split_once(' ').expect("a name and a number");
                    figures.entry(name.to_owned()).or_default().push(value.parse().expect("a number"));
                }
            }
        }
        let medians: Vec<String> =
            figures.iter_mut().map(|(name, values)| format!("{name} {:.1}", median(values))).collect();
        let written = median(figures.get_mut("written").expect("printed"));
        println!("{engine}: amplification {:.2}, {}", written / blocks as f64, medians.join(", "));
    }
}

fn engines() -> Vec<String> {
    let named = std::env::var("ENGINES").unwrap_or_else(|_| ENGINES.join(","));
    named.split(',').map(str::to_owned).collect()
}

fn this() -> Command {
    Command::new(std::env::current_exe().expect("this program"))
}

fn clear(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).expect("a folder");
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Stores everything and prints the cost.
fn store(engine: &str, inputs: &Inputs) {
    let recording = inputs.read();
    let started = Instant::now();
    let mut flushes = 0;
    let mut flushed = || {
        flushes += 1;
        if flushes % WRITEBACK_EVERY == 0 {
            write_back(&inputs.folder);
        }
    };
    if engine == "files" {
        let mut writer = files::open(&inputs.folder, files::LIMITS);
        append_sweeps(&mut writer, &recording, |_| flushed());
        print_cost(started);
        writer.close();
    } else {
        let mut stored = kv::open(engine, &inputs.folder);
        for (number, event) in trace::read(&inputs.trace).enumerate() {
            stored.add(&event, number as u64);
            if matches!(event, Event::Newest(_)) {
                flushed();
            }
        }
        print_cost(started);
    }
    println!("bytes_on_disk {}", disk_use(&inputs.folder));
}

fn print_cost(started: Instant) {
    println!("secs {}", started.elapsed().as_secs_f64());
    let io = std::fs::read_to_string("/proc/self/io").expect("figures");
    let figure = |name: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
        line.trim().parse::<u64>().expect("a number")
    };
    println!("written {}", figure("write_bytes:"));
    println!("of_it_cancelled {}", figure("cancelled_write_bytes:"));
}

/// Opens what was stored and closed, and deletes the oldest half of the samples.
fn reopen(engine: &str, inputs: &Inputs) {
    let started = Instant::now();
    if engine == "files" {
        let mut writer = files::open(&inputs.folder, files::LIMITS);
        println!("open_ms {}", started.elapsed().as_secs_f64() * 1e3);
        println!("opened_bytes_on_disk {}", disk_use(&inputs.folder));
        let recording = inputs.read();
        files::delete_half(&mut writer, &recording.sweep(recording.len));
        println!("half_deleted {}", disk_use(&inputs.folder));
        println!("half_deleted_compacted {}", disk_use(&inputs.folder));
        return;
    }
    let mut stored = kv::open(engine, &inputs.folder);
    println!("open_ms {}", started.elapsed().as_secs_f64() * 1e3);
    println!("opened_bytes_on_disk {}", disk_use(&inputs.folder));
    let keys = stored.all().into_iter().map(|(key, _)| key).filter(|key| key[4] == 0);
    let keys: Vec<Vec<u8>> = keys.collect();
    stored.delete(&keys[..keys.len() / 2]);
    println!("half_deleted {}", disk_use(&inputs.folder));
    stored.compact();
    drop(stored);
    drop(kv::open(engine, &inputs.folder));
    println!("half_deleted_compacted {}", disk_use(&inputs.folder));
}

/// Kills a process while it stores, again and again.
fn kill(engine: &str, inputs: &Inputs, rounds: usize) {
    let (mut lost_most, mut lossy, mut damaged, mut times) = (0, 0, 0, Vec::new());
    let total = if engine == "files" { inputs.read().len } else { trace::read(&inputs.trace).count() };
    for _ in 0..rounds {
        clear(&inputs.folder);
        let mut command = this();
        command.arg("append").arg(engine).args(inputs.arguments());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
        let mut acknowledged = 0;
        let until = fastrand::usize(total / 20..total * 19 / 20);
        let mut is_killed = false;
        for line in BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok) {
            acknowledged = line.parse().expect("a number");
            if acknowledged >= until && !is_killed {
                // Anywhere in what follows.
                std::thread::sleep(Duration::from_micros(fastrand::u64(0..5000)));
                child.kill().expect("killed");
                is_killed = true;
            }
        }
        child.wait().expect("ended");
        let output =
            this().arg("check").arg(engine).arg(acknowledged.to_string()).args(inputs.arguments()).output();
        let output = output.expect("run");
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [lost, different, open] = numbers[..] else {
            damaged += 1;
            println!("{}", String::from_utf8_lossy(&output.stderr));
            continue;
        };
        lost_most = lost_most.max(lost as usize);
        lossy += usize::from(lost > 0.0);
        damaged += usize::from(different > 0.0);
        times.push(open);
    }
    println!(
        "{engine}: killed {rounds} times: {lossy} times something older than 10 s lost, {lost_most} s at most; \
         {damaged} times damaged; opened in {:.1} ms, {:.1} at most",
        median(&mut times),
        times[times.len() - 1]
    );
}

/// Stores until it is killed; prints how much was acknowledged. Nothing is closed.
fn append(engine: &str, inputs: &Inputs) {
    let mut out = std::io::stdout().lock();
    let wait = || std::thread::sleep(Duration::from_secs(60));
    if engine == "files" {
        let mut writer = files::open(&inputs.folder, files::LIMITS);
        append_sweeps(&mut writer, &inputs.read(), |sweeps| {
            writeln!(out, "{sweeps}").expect("written");
        });
        wait();
    } else {
        let mut stored = kv::open(engine, &inputs.folder);
        for (number, event) in trace::read(&inputs.trace).enumerate() {
            stored.add(&event, number as u64);
            writeln!(out, "{}", number + 1).expect("written");
        }
        wait();
    }
}

/// Compares what is stored with what was acknowledged: prints seconds lost, values or entries that differ, time to open.
fn check(engine: &str, acknowledged: usize, inputs: &Inputs) {
    let started = Instant::now();
    if engine == "files" {
        let writer = files::open(&inputs.folder, files::LIMITS);
        let open = started.elapsed().as_secs_f64() * 1e3;
        let (missing, different) = files::check(&writer, &inputs.read(), acknowledged);
        println!("{missing} {different} {open}");
        return;
    }
    let stored = kv::open(engine, &inputs.folder);
    let open = started.elapsed().as_secs_f64() * 1e3;
    let found = stored.all();
    let events: Vec<Event> = trace::read(&inputs.trace).collect();
    // The last event may be stored without having been acknowledged.
    let last = (acknowledged + 1).min(events.len());
    let match_at = (0..=last).rev().find(|count| kv::content(&events[..*count]) == found);
    match match_at {
        Some(count) => {
            let lost = events[count.min(acknowledged)..acknowledged].iter();
            println!("{} 0 {open}", 10 * lost.filter(|event| matches!(event, Event::Newest(_))).count());
        }
        None => println!("0 1 {open}"),
    }
}

fn append_sweeps(writer: &mut store::writer::Writer, recording: &Recording, mut flushed: impl FnMut(usize)) {
    for number in 0..recording.len {
        files::push(writer, &recording.sweep(number));
        if number % files::FLUSH_EVERY == files::FLUSH_EVERY - 1 {
            writer.flush();
            flushed(number + 1);
        }
    }
}

fn each_file(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map_while(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() { each_file(&path, visit) } else { visit(&path) }
    }
}

/// Writes all pages to the disk.
fn write_back(folder: &Path) {
    each_file(folder, &mut |path| {
        // A file may be deleted meanwhile.
        let _ = std::fs::File::open(path).and_then(|file| file.sync_data());
    });
}

/// Space in use on the disk; parts of files that were never written take none.
fn disk_use(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    write_back(folder);
    let mut bytes = 0;
    each_file(folder, &mut |path| bytes += path.metadata().map_or(0, |metadata| metadata.blocks() * 512));
    bytes
}
