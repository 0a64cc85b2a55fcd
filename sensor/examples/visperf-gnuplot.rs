//! A handler of visperf that writes what gnuplot draws: a file of points for each figure, and a script that draws all of them.
//!
//! ```text
//! visperf-gnuplot [--to FOLDER] [--top N] [METRIC...]
//! ```
//! METRIC is the name of a figure of the host, in which `*` matches any characters; `node_load*` and `module.*` where none is
//! given. `--top N` adds the N processes that use most CPU at the time. `gnuplot plot.gp` in the folder makes `plot.svg`.
//! WallMon's gnuplot module kept all in memory and drew at the end; this one can be looked at while it runs.
//! Rule: files and their lengths are bounded, also over its starts, for it goes on with those that `plot.gp` names; of a full one
//! the older half is `.old`. None is kept open: there may be as many as a module may open files.

use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

/// Most figures: a picture of more says nothing.
const SERIES_MAX: usize = 64;
/// One of so many makes room for a new one once it had no point for so long, in seconds; before, the new one is left out.
const SILENT_SECS: f64 = 60.0;
/// Longest file of points, in bytes: a day of one a second.
const FILE_LEN_MAX_BYTES: u64 = 4 << 20;
/// The script, and what stands in it between the name of a series' file and its title.
const SCRIPT: &str = "plot.gp";
const BEFORE_TITLE: &str = " using 1:2 with lines title '";
/// What is drawn where nothing is named.
const USUAL: [&str; 2] = ["node_load*", "module.*"];

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(told) => {
            // Standard error is what a sensor keeps of a module; where it is gone there is no one to tell.
            let _ = writeln!(io::stderr(), "visperf-gnuplot: {told}");
            ExitCode::FAILURE
        }
    }
}

struct Arguments {
    folder: PathBuf,
    top: Option<u32>,
    metrics: Vec<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut arguments = Arguments { folder: ".".into(), top: None, metrics: Vec::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--to" => arguments.folder = words.next().ok_or("--to: expected a folder after it")?.into(),
                "--top" => {
                    let count = words.next().and_then(|count| count.parse().ok());
                    arguments.top = Some(count.ok_or("--top: expected a number of processes after it")?);
                }
                option if option.starts_with('-') => {
                    return Err(format!("expected --to FOLDER, --top N or names of metrics, found {option}"));
                }
                _ => arguments.metrics.push(word),
            }
        }
        if arguments.metrics.is_empty() {
            arguments.metrics = USUAL.map(ToOwned::to_owned).to_vec();
        }
        Ok(arguments)
    }

    fn hello(&self) -> Value {
        let mut hello = json!({"protocol": 1, "name": "gnuplot", "kind": "handler", "metrics": self.metrics});
        if let Some(top) = self.top {
            hello["processes"] = json!({"rate": 1, "filter": format!("top {top} by cpu")});
        }
        hello
    }
}

/// Answer each call with a line, until there are no more.
fn run(arguments: Arguments) -> Result<(), String> {
    fs::create_dir_all(&arguments.folder)
        .map_err(|error| format!("{}: {error}", arguments.folder.display()))?;
    let mut plot = Plot::new(arguments.folder.clone());
    let mut answers = io::stdout().lock();
    for call in io::stdin().lock().lines() {
        let call: Value = serde_json::from_str(&call.map_err(|error| error.to_string())?)
            .map_err(|error| format!("expected a call of the sensor, found no JSON: {error}"))?;
        let answer = if call.get("hello").is_some() {
            arguments.hello()
        } else {
            for entry in call["handle"]["entries"].as_array().into_iter().flatten() {
                plot.take(entry).map_err(|error| format!("{}: {error}", arguments.folder.display()))?;
            }
            plot.draw().map_err(|error| format!("{}: {error}", arguments.folder.display()))?;
            json!({"figures": [
                {"name": "points_total", "semantics": "counter", "value": plot.points_total},
                {"name": "series", "value": plot.series.len()},
            ]})
        };
        writeln!(answers, "{answer}").and_then(|()| answers.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What is drawn.
struct Plot {
    folder: PathBuf,
    /// By the name of the file.
    series: BTreeMap<String, Series>,
    points_total: u64,
    /// Whether the script names all series.
    is_drawn: bool,
}

struct Series {
    title: String,
    len_bytes: u64,
    /// When its last point is, in seconds since 1970.
    last: f64,
}

impl Plot {
    /// With what was drawn in this folder before.
    fn new(folder: PathBuf) -> Plot {
        let script = fs::read_to_string(folder.join(SCRIPT)).unwrap_or_default();
        let named = script.lines().filter_map(|line| {
            let (name, rest) = line.trim_start().strip_prefix('\'')?.split_once('\'')?;
            let title = rest.strip_prefix(BEFORE_TITLE)?.split_once('\'')?.0;
            // Somebody may have written in it: only what this program calls a file is one of its files.
            (name == file_name(name.strip_suffix(".dat")?)).then_some(())?;
            let found = fs::metadata(folder.join(name)).ok()?;
            let last = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
            Some((name.to_owned(), Series { title: title.to_owned(), len_bytes: found.len(), last }))
        });
        let series = named.take(SERIES_MAX).collect();
        Plot { folder, series, points_total: 0, is_drawn: false }
    }

    fn take(&mut self, entry: &Value) -> io::Result<()> {
        let Some(time) = entry["time"].as_f64() else { return Ok(()) };
        match entry["what"].as_str() {
            Some("figures") => {
                for figure in entry["figures"].as_array().into_iter().flatten() {
                    let Some(value) = figure["value"].as_f64() else { continue };
                    self.point(&title(figure), time, value)?;
                }
            }
            Some("sample") => {
                for process in entry["processes"].as_array().into_iter().flatten() {
                    let Some(cpu) = process["cpu"].as_f64() else { continue };
                    let name = process["name"].as_str().unwrap_or_default();
                    self.point(&format!("{name}[{}]", process["pid"]), time, cpu)?;
                }
            }
            // Signals, events and what was missed are no points.
            _ => {}
        }
        Ok(())
    }

    fn point(&mut self, title: &str, time: f64, value: f64) -> io::Result<()> {
        let name = file_name(title);
        if !self.series.contains_key(&name) {
            if self.series.len() >= SERIES_MAX && !self.make_room(time)? {
                return Ok(());
            }
            let len_bytes = fs::metadata(self.folder.join(&name)).map_or(0, |found| found.len());
            self.series.insert(name.clone(), Series { title: title.to_owned(), len_bytes, last: time });
            self.is_drawn = false;
        }
        let Some(series) = self.series.get_mut(&name) else { return Ok(()) };
        series.add(&self.folder, &name, time, value)?;
        self.points_total += 1;
        Ok(())
    }

    /// Drop the series that was silent for longest, if that is long enough.
    fn make_room(&mut self, now: f64) -> io::Result<bool> {
        let earlier = |a: &f64, b: &f64| a.partial_cmp(b).unwrap_or(Ordering::Equal);
        let oldest = self.series.iter().min_by(|(_, a), (_, b)| earlier(&a.last, &b.last));
        let Some((name, _)) = oldest.filter(|(_, series)| series.last + SILENT_SECS < now) else {
            return Ok(false);
        };
        let name = name.clone();
        for gone in [name.clone(), old(&name)] {
            match fs::remove_file(self.folder.join(gone)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.series.remove(&name);
        Ok(true)
    }

    /// The script that draws them, where it does not name all of them yet.
    fn draw(&mut self) -> io::Result<()> {
        if self.is_drawn || self.series.is_empty() {
            return Ok(());
        }
        let mut script =
            "set terminal svg size 1200,600\nset output 'plot.svg'\nset xdata time\nset timefmt '%s'\n\
                          set format x '%H:%M:%S'\nset key outside\nplot \\\n"
                .to_owned();
        for (number, (name, series)) in self.series.iter().enumerate() {
            let end = if number + 1 == self.series.len() { "\n" } else { ", \\\n" };
            let shown = series.title.replace(['\'', '\\', '\n'], " ");
            // Writing into a text does not fail.
            let _ = write!(script, "  '{name}'{BEFORE_TITLE}{shown}' noenhanced{end}");
        }
        let (new, path) = (self.folder.join(format!("{SCRIPT}.new")), self.folder.join(SCRIPT));
        fs::write(&new, script)?;
        fs::rename(&new, &path)?;
        self.is_drawn = true;
        Ok(())
    }
}

impl Series {
    fn add(&mut self, folder: &Path, name: &str, time: f64, value: f64) -> io::Result<()> {
        let (path, line) = (folder.join(name), format!("{time:.3} {value}\n"));
        if self.len_bytes + line.len() as u64 > FILE_LEN_MAX_BYTES {
            fs::rename(&path, folder.join(old(name)))?;
            self.len_bytes = 0;
        }
        OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())?;
        self.len_bytes += line.len() as u64;
        self.last = time;
        Ok(())
    }
}

/// Where the older half of a full file is.
fn old(name: &str) -> String {
    format!("{name}.old")
}

/// `node_cpu_seconds_total cpu=0 mode=user`
fn title(figure: &Value) -> String {
    let mut title = figure["name"].as_str().unwrap_or_default().to_owned();
    for (name, value) in figure["labels"].as_object().into_iter().flatten() {
        title += &format!(" {name}={}", value.as_str().unwrap_or_default());
    }
    title
}

/// A name that no shell and no gnuplot mistakes; no two titles have the same one, but for those that differ in such characters only.
fn file_name(title: &str) -> String {
    let plain =
        |char: char| if char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-') { char } else { '_' };
    let name: String = title.chars().take(120).map(plain).collect();
    // Of two dots and a slash nothing is left that leads elsewhere, and no file is hidden.
    format!("{}.dat", name.replace("..", "_").trim_start_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(file_name("module.gpu.utilization gpu=0"), "module.gpu.utilization_gpu_0.dat");
        assert_eq!(file_name("../../etc/x'y"), "____etc_x_y.dat");
    }

    #[test]
    fn arguments_are_told_when_they_cannot_be_meant() {
        let parse = |words: &[&str]| Arguments::parse(words.iter().map(|word| (*word).to_owned()));
        let usual = parse(&[]).unwrap_or_else(|told| panic!("{told}"));
        assert_eq!(usual.hello()["metrics"], json!(USUAL));
        let more = parse(&["--top", "5", "node_load1"]).unwrap_or_else(|told| panic!("{told}"));
        assert_eq!(more.hello()["processes"]["filter"], json!("top 5 by cpu"));
        for bad in [&["--to"][..], &["--top", "x"], &["--from", "x"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    /// A folder of one test, removed with the guard.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("visperf-gnuplot-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Folder(folder)
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.0.join(name)).unwrap()
        }

        fn points(&self) -> usize {
            let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_string_lossy().contains(".dat")).count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_full_file_goes_on_in_a_new_one() {
        let folder = Folder::new("full");
        fs::write(folder.0.join("a.dat"), "0 1\n").unwrap();
        let mut series = Series { title: "a".to_owned(), len_bytes: FILE_LEN_MAX_BYTES, last: 0.0 };
        series.add(&folder.0, "a.dat", 1.0, 2.5).unwrap();
        assert_eq!(
            (folder.read("a.dat").as_str(), folder.read("a.dat.old").as_str()),
            ("1.000 2.5\n", "0 1\n")
        );
    }

    #[test]
    fn files_are_bounded_over_starts_and_the_silent_ones_make_room() {
        let (folder, others) = (Folder::new("bounded"), "data of somebody else");
        fs::write(folder.0.join("other.dat"), others).unwrap();
        let mut time = 4e9;
        for start in 0..5 {
            let mut plot = Plot::new(folder.0.clone());
            assert_eq!(plot.series.len(), if start == 0 { 0 } else { SERIES_MAX }, "it goes on with those");
            time += SILENT_SECS / 2.0;
            plot.point("stays", time, 1.0).unwrap();
            for number in 0..100 {
                plot.point(&format!("p[{}]", start * 100 + number), time, 1.0).unwrap();
            }
            plot.draw().unwrap();
            assert_eq!(plot.series.len(), SERIES_MAX);
        }
        assert_eq!(folder.points(), SERIES_MAX + 1);
        assert_eq!(folder.read("stays.dat").lines().count(), 5, "what still comes is kept");
        assert!(folder.read(SCRIPT).contains("title 'p[400]'"), "{}", folder.read(SCRIPT));
        assert_eq!(folder.read("other.dat"), others);
    }
}
