//! Script of a consumer, for what a filter cannot express: run at each sample that is due.
//!
//! ```text
//! records   the processes that passed: for process in records, records.len(), records[0],
//!           records.sum("cpu"), .max(..), .min(..), .mean(..)
//! process   its fields by name: process.cpu, process.name; () where one is not known
//! state     a map that is stored from sample to sample
//! now       seconds since boot
//! result    () or true: the records as they are; false: nothing; an array of records: these;
//!           a number or a map of numbers: these figures instead
//! ```
//!
//! Rule: scripts are untrusted. Operations, time, depth and sizes are bounded at each run, and so is the
//! stored state; scripts have no access to files, clocks, output or other scripts. A script that fails is not
//! run again.
//! Not here: the sizes of values and the functions a script may call (`engine`), its CPU use over time
//! (`meter`), when it runs (`process_evaluation`, `host_evaluation`, `event_evaluation`).

mod engine;

use super::fields::{self, Subject};
use compact_str::CompactString;
use rhai::{AST, Array, Dynamic, Engine, EvalAltResult, Map, Scope};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wire::channel::SCRIPT_LEN_MAX_BYTES;
use wire::channel::stream::FIGURES_MAX;

/// Most operations of one run: a few for each of some thousand processes, about a millisecond.
pub const OPERATIONS_MAX: u64 = 20_000;
/// Most CPU time of one run: a single operation may take long, up to the sizes in `engine`.
pub const RUN_MAX: Duration = Duration::from_millis(5);
/// Operations between two checks of the clock.
const LOOK_AFTER: u64 = 32;
/// Why a script is invalid, or is not run any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("script: expected at most {SCRIPT_LEN_MAX_BYTES} bytes, found {0}; shorten it")]
    Length(usize),
    #[error("script: {0}")]
    Parse(String),
    /// It exceeded the operations or the time of a run.
    #[error(
        "script: expected at most {OPERATIONS_MAX} operations and {} ms in a run, found more; let the filter choose \
         fewer processes, or end the loop",
        RUN_MAX.as_millis()
    )]
    Endless,
    /// It failed at run time.
    #[error("script: {0}")]
    Failed(String),
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The records as they are.
    Pass,
    /// No records: nothing is sent.
    Hold,
    /// Only these records, by position.
    Only(Vec<usize>),
    /// These figures instead of records.
    Figures(Vec<(CompactString, f64)>),
}

/// A compiled script.
pub struct Script<S: Subject> {
    of: PhantomData<fn() -> S>,
    engine: Engine,
    ast: AST,
    state: Map,
    clock: fn() -> Duration,
    /// When the current run is stopped, in nanoseconds of the clock.
    deadline_ns: Arc<AtomicU64>,
}

impl<S: Subject> std::fmt::Debug for Script<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}

/// The records of a sample, as a script sees them.
struct Records<S: Subject>(Arc<Vec<S::Record>>);

/// One record of a sample.
struct One<S: Subject>(Arc<Vec<S::Record>>, usize);

impl<S: Subject> Clone for Records<S> {
    fn clone(&self) -> Records<S> {
        Records(Arc::clone(&self.0))
    }
}

impl<S: Subject> Clone for One<S> {
    fn clone(&self) -> One<S> {
        One(Arc::clone(&self.0), self.1)
    }
}

impl<S: Subject> IntoIterator for Records<S> {
    type Item = One<S>;
    type IntoIter = Box<dyn Iterator<Item = One<S>>>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new((0..self.0.len()).map(move |place| One(Arc::clone(&self.0), place)))
    }
}

impl<S: Subject> Script<S> {
    /// Compiles the script; `clock` returns the CPU time of the calling thread.
    ///
    /// # Errors
    /// If it is too long or does not parse.
    pub fn new(text: &str, clock: fn() -> Duration) -> Result<Script<S>, Error> {
        if text.len() > SCRIPT_LEN_MAX_BYTES {
            return Err(Error::Length(text.len()));
        }
        let deadline_ns = Arc::new(AtomicU64::new(u64::MAX));
        let mut engine = engine::bounded(OPERATIONS_MAX);
        let deadline = Arc::clone(&deadline_ns);
        engine.on_progress(move |operations| {
            let is_late = || nanos(clock()) > deadline.load(Ordering::Relaxed);
            (operations % LOOK_AFTER == 0 && is_late()).then_some(Dynamic::UNIT)
        });
        name_records::<S>(&mut engine);
        let ast = engine.compile(text).map_err(|error| Error::Parse(error.to_string()))?;
        Ok(Script { of: PhantomData, engine, ast, state: Map::new(), clock, deadline_ns })
    }

    /// Runs the script over these records, `now_secs` seconds after boot; returns the records too.
    ///
    /// # Errors
    /// If it failed or exceeded a limit: it must not be run again.
    pub fn run(
        &mut self,
        records: Vec<S::Record>,
        now_secs: f64,
    ) -> Result<(Outcome, Vec<S::Record>), Error> {
        let records = Arc::new(records);
        let mut scope = Scope::new();
        scope.push("state", std::mem::take(&mut self.state));
        scope.push_constant("records", Records::<S>(Arc::clone(&records)));
        scope.push_constant("now", now_secs);
        self.deadline_ns.store(nanos((self.clock)() + RUN_MAX), Ordering::Relaxed);
        let result = self.engine.eval_ast_with_scope::<Dynamic>(&mut scope, &self.ast);
        let outcome = outcome::<S>(result.map_err(|error| explained(&error))?)?;
        self.state =
            scope.remove::<Map>("state").filter(|state| state.values().all(is_plain)).ok_or_else(|| {
                failed("state: expected a map of numbers, texts, arrays and maps, found something else")
            })?;
        drop(scope);
        Ok((outcome, Arc::try_unwrap(records).unwrap_or_else(|shared| (*shared).clone())))
    }
}

/// Whether a value may be stored in `state`: nothing that holds on to a sample.
fn is_plain(value: &Dynamic) -> bool {
    if value.is_array() {
        return value.as_array_ref().is_ok_and(|array| array.iter().all(is_plain));
    }
    if value.is_map() {
        return value.as_map_ref().is_ok_and(|map| map.values().all(is_plain));
    }
    value.is_unit()
        || value.is_bool()
        || value.is_int()
        || value.is_float()
        || value.is_char()
        || value.is_string()
}

type Result1<T> = Result<T, Box<EvalAltResult>>;

fn name_records<S: Subject>(engine: &mut Engine) {
    engine
        .register_type_with_name::<Records<S>>("records")
        .register_type_with_name::<One<S>>(S::ONE)
        .register_iterator::<Records<S>>()
        .register_fn("len", |records: &mut Records<S>| i64::try_from(records.0.len()).unwrap_or(i64::MAX))
        .register_indexer_get(|records: &mut Records<S>, place: i64| -> Result1<One<S>> {
            let found = usize::try_from(place).ok().filter(|place| *place < records.0.len());
            let place =
                found.ok_or_else(|| format!("expected a place below {}, found {place}", records.0.len()))?;
            Ok(One(Arc::clone(&records.0), place))
        })
        .register_indexer_get(|one: &mut One<S>, name: &str| field::<S>(&one.0[one.1], name))
        .register_fn("sum", |records: &mut Records<S>, name: &str| {
            fold(records, name, |a, b| a + b).map(|sum| sum.unwrap_or(0.0))
        })
        .register_fn("max", |records: &mut Records<S>, name: &str| fold(records, name, f64::max).map(known))
        .register_fn("min", |records: &mut Records<S>, name: &str| fold(records, name, f64::min).map(known))
        .register_fn("mean", |records: &mut Records<S>, name: &str| -> Result1<Dynamic> {
            let sum = fold(records, name, |a, b| a + b)?;
            #[allow(clippy::cast_precision_loss)] // A number of processes.
            let count = values(records, name)?.count() as f64;
            Ok(known(sum.map(|sum| sum / count)))
        });
}

fn known(value: Option<f64>) -> Dynamic {
    value.map_or(Dynamic::UNIT, Dynamic::from_float)
}

fn field<S: Subject>(record: &S::Record, name: &str) -> Result1<Dynamic> {
    let seen = S::view(record);
    if let Ok(text) = fields::text_named::<S>(name) {
        return Ok((text.get)(&seen).map_or(Dynamic::UNIT, |text| text.into_owned().into()));
    }
    let number = fields::number_named::<S>(name).map_err(|error| error.to_string())?;
    Ok(known((number.get)(&seen)))
}

fn values<'a, S: Subject>(
    records: &'a Records<S>,
    name: &str,
) -> Result1<impl Iterator<Item = f64> + use<'a, S>> {
    let number = fields::number_named::<S>(name).map_err(|error| error.to_string())?;
    Ok(records.0.iter().filter_map(|record| (number.get)(&S::view(record))))
}

fn fold<S: Subject>(records: &Records<S>, name: &str, add: fn(f64, f64) -> f64) -> Result1<Option<f64>> {
    Ok(values(records, name)?.reduce(add))
}

fn outcome<S: Subject>(result: Dynamic) -> Result<Outcome, Error> {
    const EXPECTED: &str =
        "expected (), true, false, an array of records, a number or a map of numbers as its result";
    if result.is_unit() {
        return Ok(Outcome::Pass);
    }
    if let Ok(passes) = result.as_bool() {
        return Ok(if passes { Outcome::Pass } else { Outcome::Hold });
    }
    if let Some(value) = number(&result) {
        return Ok(Outcome::Figures(vec![("value".into(), value)]));
    }
    let name = result.type_name().to_owned();
    if let Some(chosen) = result.clone().try_cast::<Array>() {
        let places =
            chosen.into_iter().map(|one| Some(one.try_cast::<One<S>>()?.1)).collect::<Option<Vec<_>>>();
        return Ok(Outcome::Only(places.ok_or_else(|| failed(EXPECTED))?));
    }
    let Some(map) = result.try_cast::<Map>().filter(|map| map.len() <= FIGURES_MAX) else {
        return Err(Error::Failed(format!("{EXPECTED} (at most {FIGURES_MAX}), found {name}")));
    };
    // An unknown value, such as the mean of nothing, is not a figure.
    let figures = map.into_iter().filter(|(_, value)| !value.is_unit()).map(|(name, value)| {
        let found =
            || Error::Failed(format!("{EXPECTED}, found {} as {name:?} of the map", value.type_name()));
        Ok((CompactString::from(name.as_str()), number(&value).ok_or_else(found)?))
    });
    let figures = figures.collect::<Result<Vec<_>, Error>>()?;
    Ok(if figures.is_empty() { Outcome::Hold } else { Outcome::Figures(figures) })
}

#[allow(clippy::cast_precision_loss)] // Figures are doubles.
fn number(value: &Dynamic) -> Option<f64> {
    value.as_float().or_else(|_| value.as_int().map(|whole| whole as f64)).ok()
}

fn failed(what: &str) -> Error {
    Error::Failed(what.to_owned())
}

fn explained(error: &EvalAltResult) -> Error {
    let is_bound =
        matches!(error, EvalAltResult::ErrorTooManyOperations(_) | EvalAltResult::ErrorTerminated(..));
    if is_bound { Error::Endless } else { Error::Failed(error.to_string()) }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
