//! WebAssembly module in the sensor's process: it uses the same lines, passed through its memory.
//!
//! ```text
//! exports: memory · alloc(len: i32) -> i32 · call(at: i32, len: i32) -> i64
//! imports: visperf.log(at: i32, len: i32), or nothing
//! a call:  at = alloc(len), the line is written there; call(at, len) returns the offset of the answer
//!          in the upper 32 bits and its length in the lower ones
//! ```
//! Rules: a module has no clock, file, socket or randomness; its computation is metered (fuel), and too much
//! of it ends the call; its memory is bounded; every offset it returns is checked. After a failure the
//! instance is discarded.
//! Not here: the content of the lines (`protocol`).

use super::protocol::ANSWER_LEN_MAX_BYTES;
use super::spec::Limits;
use super::stderr::Tail;
use std::io::Read;
use std::path::Path;
use wasmi::{
    Caller, Config, EnforcedLimits, Engine, Extern, Linker, Memory, Module, Store, StoreLimits,
    StoreLimitsBuilder, TrapCode, TypedFunc,
};

/// Largest file, in bytes: a program in Rust with its own JSON parser has some 100,000.
pub const FILE_LEN_MAX_BYTES: u64 = 4 << 20;
/// Fuel of one call: some tenths of a second.
pub const FUEL_MAX: u64 = 50_000_000;
/// Most entries of a table, that is of functions that are called by index.
const TABLE_MAX: usize = 10_000;
/// Longest line that is logged, in bytes.
const LOG_LEN_MAX_BYTES: usize = 1024;

/// Failure of a WebAssembly module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    File {
        /// Path of the file.
        path: String,
        error: std::io::Error,
    },
    /// The file is too large.
    #[error("expected a file of at most {FILE_LEN_MAX_BYTES} bytes, found a longer one")]
    TooLarge,
    /// Not a valid module, or one with other exports or imports.
    #[error(
        "expected WebAssembly that exports memory, alloc(i32)->i32 and call(i32,i32)->i64 and imports at most visperf.log: {0}"
    )]
    Form(String),
    /// One call used too much fuel.
    #[error("it computed for too long (more than {FUEL_MAX} units of fuel in one call)")]
    Fuel,
    /// It trapped.
    #[error("it was stopped: {0}")]
    Trap(String),
    /// It returned an offset or length outside its memory.
    #[error("{what}: expected a place within its memory of {memory} bytes, found {len} bytes at {at}")]
    Place {
        /// The function that returned it.
        what: &'static str,
        /// Offset in bytes.
        at: u32,
        /// Length in bytes.
        len: usize,
        /// Size of the memory, in bytes.
        memory: usize,
    },
    /// The answer is too long.
    #[error("expected an answer of at most {ANSWER_LEN_MAX_BYTES} bytes, found {0}")]
    TooLong(usize),
}

/// An instance, ready for calls.
pub struct Instance {
    store: Store<Host>,
    memory: Memory,
    alloc: TypedFunc<u32, u32>,
    call: TypedFunc<(u32, u32), u64>,
}

struct Host {
    limits: StoreLimits,
    tail: Tail,
}

impl Instance {
    /// Reads and instantiates the file; its log goes to `tail`.
    ///
    /// # Errors
    /// If the file cannot be read or is not such a module.
    pub fn open(path: &Path, limits: Limits, tail: Tail) -> Result<Instance, Error> {
        let failed = |error| Error::File { path: path.display().to_string(), error };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(FILE_LEN_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_LEN_MAX_BYTES {
            return Err(Error::TooLarge);
        }
        Instance::new(&bytes, limits, tail)
    }

    /// Instantiates a module from its bytes.
    ///
    /// # Errors
    /// If it is not such a module.
    pub fn new(bytes: &[u8], limits: Limits, tail: Tail) -> Result<Instance, Error> {
        let form = |error: wasmi::Error| match error.as_trap_code() {
            Some(_) => trapped(&error),
            None => Error::Form(error.to_string()),
        };
        let mut config = Config::default();
        config.consume_fuel(true).ignore_custom_sections(true).enforced_limits(EnforcedLimits::strict());
        let engine = Engine::new(&config);
        let module = Module::new(&engine, bytes).map_err(form)?;
        let memory_bytes = usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX);
        let limits = StoreLimitsBuilder::new().memory_size(memory_bytes).table_elements(TABLE_MAX);
        let limits = limits.memories(1).tables(4).instances(1).build();
        let mut store = Store::new(&engine, Host { limits, tail });
        store.limiter(|host| &mut host.limits);
        store.set_fuel(FUEL_MAX).map_err(form)?;
        let mut linker = Linker::new(&engine);
        let linked = linker.func_wrap("visperf", "log", log).map(|_| ());
        linked.map_err(|error| Error::Form(error.to_string()))?;
        let instance = linker.instantiate_and_start(&mut store, &module).map_err(form)?;
        let memory = instance.get_memory(&store, "memory");
        let memory = memory.ok_or_else(|| Error::Form("there is no memory".to_owned()))?;
        let alloc = instance.get_typed_func(&store, "alloc").map_err(form)?;
        let call = instance.get_typed_func(&store, "call").map_err(form)?;
        Ok(Instance { store, memory, alloc, call })
    }

    /// Sends a line and returns the answer. After an error the instance must not be used any more.
    ///
    /// # Errors
    /// If it uses too much fuel, traps, or returns an offset outside its memory.
    pub fn call(&mut self, line: &str) -> Result<Vec<u8>, Error> {
        self.store.set_fuel(FUEL_MAX).map_err(|error| trapped(&error))?;
        let len = u32::try_from(line.len()).map_err(|_| Error::TooLong(line.len()))?;
        let at = self.alloc.call(&mut self.store, len).map_err(|error| trapped(&error))?;
        let memory = self.memory.data_mut(&mut self.store);
        let size = memory.len();
        let place = |what, at, len| Error::Place { what, at, len, memory: size };
        let room = span(at, line.len()).and_then(|span| memory.get_mut(span));
        room.ok_or_else(|| place("alloc", at, line.len()))?.copy_from_slice(line.as_bytes());
        let packed = self.call.call(&mut self.store, (at, len)).map_err(|error| trapped(&error))?;
        #[allow(clippy::cast_possible_truncation)] // It is two numbers of 32 bits.
        let (at, len) = ((packed >> 32) as u32, packed as u32 as usize);
        if len > ANSWER_LEN_MAX_BYTES {
            return Err(Error::TooLong(len));
        }
        let memory = self.memory.data(&self.store);
        let size = memory.len();
        let answer = span(at, len).and_then(|span| memory.get(span));
        answer.map(<[u8]>::to_vec).ok_or(Error::Place { what: "call", at, len, memory: size })
    }
}

fn span(at: u32, len: usize) -> Option<std::ops::Range<usize>> {
    let at = usize::try_from(at).ok()?;
    Some(at..at.checked_add(len)?)
}

fn trapped(error: &wasmi::Error) -> Error {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => Error::Fuel,
        _ => Error::Trap(error.to_string()),
    }
}

/// Adds a line to the tail; ignored if it is outside the memory.
fn log(caller: Caller<'_, Host>, at: u32, len: u32) {
    let len = usize::try_from(len).map_or(LOG_LEN_MAX_BYTES, |len| len.min(LOG_LEN_MAX_BYTES));
    let Some(memory) = caller.get_export("memory").and_then(Extern::into_memory) else { return };
    let Some(text) = span(at, len).and_then(|span| memory.data(&caller).get(span)) else { return };
    caller.data().tail.push(text);
}

#[cfg(test)]
mod tests;
