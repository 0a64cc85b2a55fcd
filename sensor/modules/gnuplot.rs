//! A handler of visperf that writes what gnuplot draws: a file of points for each figure, and a script that draws all of them.
//!
//! ```text
//! visperf-gnuplot [--to FOLDER] [--top N] [METRIC...]
//! ```
//! METRIC is the name of a figure of the host, in which `*` stands for any characters; `node_load*` and `module.*` where none is
//! given. `--top N` adds the N processes that use most CPU at the time. `gnuplot plot.gp` in the folder makes `plot.svg`.
//! WallMon's gnuplot module kept all in memory and drew at the end; this one can be looked at while it runs.
//! Rule: files and their lengths are bounded; of a full one the older half is `.old`.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Most figures: a picture of more says nothing.
const SERIES_MAX: usize = 64;
/// Longest file of points, in bytes: a day of one a second.
const FILE_LEN_MAX_BYTES: u64 = 4 << 20;
/// What is drawn where nothing is named.
const USUAL: [&str; 2] = ["node_load*", "module.*"];

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(told) => {
            // Standard error is what a sensor keeps of a module; where it is gone there is nobody to tell.
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
    series: BTreeMap<String, Series>,
    points_total: u64,
    /// Whether the script names all series.
    is_drawn: bool,
}

struct Series {
    file: File,
    name: String,
    len_bytes: u64,
}

impl Plot {
    fn new(folder: PathBuf) -> Plot {
        Plot { folder, series: BTreeMap::new(), points_total: 0, is_drawn: false }
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
        if !self.series.contains_key(title) {
            if self.series.len() == SERIES_MAX {
                return Ok(());
            }
            let series = Series::open(&self.folder, file_name(title))?;
            self.series.insert(title.to_owned(), series);
            self.is_drawn = false;
        }
        let Some(series) = self.series.get_mut(title) else { return Ok(()) };
        series.add(&self.folder, &format!("{time:.3} {value}\n"))?;
        self.points_total += 1;
        Ok(())
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
        for (number, (title, series)) in self.series.iter().enumerate() {
            let end = if number + 1 == self.series.len() { "\n" } else { ", \\\n" };
            let shown = title.replace(['\'', '\\', '\n'], " ");
            // Writing into a text does not fail.
            let _ =
                write!(script, "  '{}' using 1:2 with lines title '{shown}' noenhanced{end}", series.name);
        }
        let (new, path) = (self.folder.join("plot.gp.new"), self.folder.join("plot.gp"));
        fs::write(&new, script)?;
        fs::rename(&new, &path)?;
        self.is_drawn = true;
        Ok(())
    }
}

impl Series {
    fn open(folder: &Path, name: String) -> io::Result<Series> {
        let file = OpenOptions::new().create(true).append(true).open(folder.join(&name))?;
        let len_bytes = file.metadata()?.len();
        Ok(Series { file, name, len_bytes })
    }

    fn add(&mut self, folder: &Path, line: &str) -> io::Result<()> {
        if self.len_bytes + line.len() as u64 > FILE_LEN_MAX_BYTES {
            fs::rename(folder.join(&self.name), folder.join(format!("{}.old", self.name)))?;
            *self = Series::open(folder, std::mem::take(&mut self.name))?;
        }
        self.file.write_all(line.as_bytes())?;
        self.len_bytes += line.len() as u64;
        Ok(())
    }
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

    #[test]
    fn a_full_file_goes_on_in_a_new_one() {
        let folder = std::env::temp_dir().join(format!("visperf-gnuplot-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut series = Series::open(&folder, "a.dat".to_owned()).unwrap();
        series.len_bytes = FILE_LEN_MAX_BYTES;
        series.add(&folder, "1 2\n").unwrap();
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!((read("a.dat").as_str(), read("a.dat.old").as_str()), ("1 2\n", ""));
        fs::remove_dir_all(&folder).unwrap();
    }
}
