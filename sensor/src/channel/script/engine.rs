//! Interpreter of scripts: the functions they may call, and how large their values may become.
//!
//! Pure. Rule: the library of functions is built once and shared by all scripts: it takes some hundred KiB, a
//! script some ten. Not here: the functions of records, the time of a run (`script`).

use rhai::packages::{
    ArithmeticPackage, BasicArrayPackage, BasicIteratorPackage, BasicMapPackage, BasicMathPackage,
    BasicStringPackage, LogicPackage, MoreStringPackage, Package,
};
use rhai::{Engine, Module, OptimizationLevel, Shared};
use std::sync::OnceLock;

/// Most elements of an array, including those of nested arrays: a window of eight seconds at 128 Hz.
const ARRAY_MAX: usize = 1024;
/// Most entries of a map, including those of nested maps.
const MAP_MAX: usize = 256;
/// Most bytes of a text, and of all texts in an array or a map.
const TEXT_MAX_BYTES: usize = 4096;
/// Depth of calls, and of expressions outside and inside functions: the thread's stack is small.
const DEPTHS_MAX: (usize, usize, usize) = (8, 32, 16);
/// Most functions, and most variables, of a script.
const NAMES_MAX: usize = 32;

/// Creates an interpreter that stops a run after so many operations.
pub(super) fn bounded(operations_max: u64) -> Engine {
    let mut engine = Engine::new_raw();
    for functions in library() {
        engine.register_global_module(Shared::clone(functions));
    }
    let (calls, outside, inside) = DEPTHS_MAX;
    engine
        .set_optimization_level(OptimizationLevel::None)
        .set_max_operations(operations_max)
        .set_max_call_levels(calls)
        .set_max_expr_depths(outside, inside)
        .set_max_functions(NAMES_MAX)
        .set_max_variables(NAMES_MAX)
        .set_max_array_size(ARRAY_MAX)
        .set_max_map_size(MAP_MAX)
        .set_max_string_size(TEXT_MAX_BYTES)
        .set_max_strings_interned(0);
    for symbol in ["eval", "print", "debug"] {
        engine.disable_symbol(symbol);
    }
    engine
}

/// The functions that every script may call, by kind.
fn library() -> &'static [Shared<Module>; 8] {
    static LIBRARY: OnceLock<[Shared<Module>; 8]> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        [
            ArithmeticPackage::new().as_shared_module(),
            LogicPackage::new().as_shared_module(),
            BasicMathPackage::new().as_shared_module(),
            BasicStringPackage::new().as_shared_module(),
            MoreStringPackage::new().as_shared_module(),
            BasicIteratorPackage::new().as_shared_module(),
            BasicArrayPackage::new().as_shared_module(),
            BasicMapPackage::new().as_shared_module(),
        ]
    })
}
