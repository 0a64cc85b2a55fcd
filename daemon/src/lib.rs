//! What every visperf daemon needs to run: shutdown, telemetry, configuration files, descriptors, the state folder.
//!
//! Rule: plumbing only. It knows no daemon's state, opens no socket and spawns no task that its
//! caller does not hold. Not here: what the sections of the file mean (each daemon's `config`).

pub mod config_file;
pub mod descriptors;
pub mod shutdown;
pub mod state_file;
pub mod state_folder;
pub mod telemetry;
