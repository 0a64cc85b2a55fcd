//! Handler for gnuplot: writes a data file for each figure, and a script that plots all of them.
//!
//! ```text
//! visperf-gnuplot [--to FOLDER] [--top N] [METRIC...]
//! ```
//! METRIC is the name of a figure of the host; `*` matches any characters [default: `node_load*` and
//! `module.*`]. `--top N` adds the N processes with the highest current CPU usage. `gnuplot plot.gp` in the
//! folder writes `plot.svg`.
//! WallMon's gnuplot module stored everything in memory and plotted at the end; this one can be viewed while
//! it runs.
//! Rule: the number and length of files are bounded, also across restarts: it continues with the files that
//! `plot.gp` names. The older half of a full file is in `.old`. No file stays open: there may be as many as a
//! module may open.

use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

/// Limit on plotted figures: a plot of more is unreadable.
const SERIES_MAX: usize = 64;
/// Once a series had no point for this long, in seconds, a new one may replace it; before that, the new one
/// is dropped.
const SILENT_SECS: f64 = 60.0;
/// Limit on the length of a data file, in bytes: a day at one point per second.
const FILE_LEN_MAX_BYTES: u64 = 4 << 20;
/// Name of the script, and its text between the file name of a series and its title.
const SCRIPT: &str = "plot.gp";
const BEFORE_TITLE: &str = " using 1:2 with lines title '";
/// The metrics to plot if none is given.
const USUAL: [&str; 2] = ["node_load*", "module.*"];

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            // The sensor stores the standard error of a module; if it is closed, there is nowhere to report.
            let _ = writeln!(io::stderr(), "visperf-gnuplot: {text}");
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

/// Answers each call with one line, until the input ends.
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

/// State of the plot.
struct Plot {
    folder: PathBuf,
    /// By file name.
    series: BTreeMap<String, Series>,
    points_total: u64,
    /// Whether the script names all series.
    is_drawn: bool,
}

struct Series {
    title: String,
    len_bytes: u64,
    /// Time of its last point, in seconds since 1970.
    last: f64,
}

impl Plot {
    /// Continues with the series that were plotted in this folder before.
    fn new(folder: PathBuf) -> Plot {
        let script = fs::read_to_string(folder.join(SCRIPT)).unwrap_or_default();
        let named = script.lines().filter_map(|line| {
            let (name, rest) = line.trim_start().strip_prefix('\'')?.split_once('\'')?;
            let title = rest.strip_prefix(BEFORE_TITLE)?.split_once('\'')?.0;
            // The script may have been edited: accept only file names that this program would choose.
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
            // Signals, events and missed counts have no points.
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

    /// Removes the series that was silent for longest, if that was at least [`SILENT_SECS`].
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

    /// Writes the script that plots all series, unless it names all of them already.
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
            // Writing to a `String` does not fail.
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

/// Name of the file with the older half of a full file.
fn old(name: &str) -> String {
    format!("{name}.old")
}

/// Example: `node_cpu_seconds_total cpu=0 mode=user`.
fn title(figure: &Value) -> String {
    let mut title = figure["name"].as_str().unwrap_or_default().to_owned();
    for (name, value) in figure["labels"].as_object().into_iter().flatten() {
        title += &format!(" {name}={}", value.as_str().unwrap_or_default());
    }
    title
}

/// Builds a file name that is safe for shells and gnuplot. Titles that differ only in other characters, or
/// after the first 120, share a name.
fn file_name(title: &str) -> String {
    let plain =
        |char: char| if char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-') { char } else { '_' };
    let name: String = title.chars().take(120).map(plain).collect();
    // No `..` and no slash is left, so it stays in the folder, and no file is hidden.
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
    fn arguments_are_refused_when_they_cannot_be_meant() {
        let parse = |words: &[&str]| Arguments::parse(words.iter().map(|word| (*word).to_owned()));
        let usual = parse(&[]).unwrap_or_else(|text| panic!("{text}"));
        assert_eq!(usual.hello()["metrics"], json!(USUAL));
        let more = parse(&["--top", "5", "node_load1"]).unwrap_or_else(|text| panic!("{text}"));
        assert_eq!(more.hello()["processes"]["filter"], json!("top 5 by cpu"));
        for bad in [&["--to"][..], &["--top", "x"], &["--from", "x"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    /// A folder of one test, removed on drop.
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
        let (folder, others) = (Folder::new("bounded"), "data of another user");
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
