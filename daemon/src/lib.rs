//! Common parts of every visperf daemon: shutdown, telemetry, configuration files, descriptors, the state
//! folder.
//!
//! Rule: infrastructure only. The crate knows no daemon's state, opens no socket and spawns no task that its
//! caller does not own. Not here: the meaning of the sections of the file (each daemon's `config`).

pub mod config_file;
pub mod descriptors;
pub mod shutdown;
pub mod state_file;
pub mod state_folder;
pub mod telemetry;
