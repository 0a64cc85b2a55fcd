//! Configuration of modules: `[sensor.modules]`.
//!
//! Pure. Rule: without a folder there are no modules, and nothing is ever started.
//! Not here: the files in the folder (`spec`), reading the folder (`worker`).

use crate::recorder::config::KeyError;
use serde::Deserialize;
use std::path::PathBuf;

/// `[sensor.modules]` as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// The folder in which each file `NAME.toml` is a module.
    pub folder: Option<PathBuf>,
}

/// Checked configuration of modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `None` disables modules.
    pub folder: Option<PathBuf>,
}

impl Config {
    /// Checks `raw`.
    ///
    /// # Errors
    /// Every invalid value.
    pub fn new(raw: RawConfig) -> Result<Config, Vec<KeyError>> {
        match raw.folder {
            Some(folder) if !folder.is_absolute() => {
                let message = format!(
                    "{} is no whole path: which folder it means would hang on that in which a daemon is started; begin it \
                     with /",
                    folder.display()
                );
                Err(vec![KeyError { keys: vec!["folder".to_owned()], message }])
            }
            folder => Ok(Config { folder }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_written_from_the_root_on() {
        let check = |folder: Option<&str>| Config::new(RawConfig { folder: folder.map(PathBuf::from) });
        assert_eq!(check(None), Ok(Config::default()));
        assert!(check(Some("/etc/visperf/modules")).is_ok());
        assert_eq!(check(Some("modules")).expect_err("not whole")[0].keys, ["folder"]);
    }
}
