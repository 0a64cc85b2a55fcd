//! Settings file: theme, tabs, moves on the map, graphs, sensors, size of the window.
//!
//! Rule: a file that cannot be read or has another format is reported once, and replaced by the defaults.

use super::tab::Tab;
use crate::atomic_file;
use crate::graphs::to_save as of;
use crate::layout::Moves;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes; a usual one has some thousand.
const FILE_LEN_MAX_BYTES: u64 = 1 << 20;

/// Theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// The theme of the desktop.
    #[default]
    System,
    /// Light on dark.
    Dark,
    /// Dark on light.
    Light,
}

/// Settings of the viewer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub look: Look,
    /// Moves of the user on the map.
    pub moves: Moves,
    /// Arrangement of the tabs, if it is not the default one.
    pub tabs: Option<egui_tiles::Tree<Tab>>,
    pub graphs: crate::graphs::Choice,
    /// Sensors that are watched by their addresses.
    pub sensors: Vec<std::net::SocketAddr>,
    pub hides_tree: bool,
    /// Width and height of the window, in points.
    pub window: Option<(f32, f32)>,
}

/// Settings could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the settings of the viewer: {error}: {path}")]
pub struct Error {
    path: String,
    error: String,
}

/// The file in the user's configuration folder, if there is one.
#[must_use]
pub fn default_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("visperf/viewer.json"))
}

impl Settings {
    /// Load a file; the defaults and an error where it cannot be used, the defaults alone where there is
    /// none.
    #[must_use]
    pub fn load(file: &Path) -> (Settings, Option<String>) {
        let failed = |error: &dyn std::fmt::Display| {
            Some(format!("settings of the viewer are reset: {error}: {}", file.display()))
        };
        match file.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (Settings::default(), None),
            Err(error) => return (Settings::default(), failed(&error)),
            Ok(about) if about.len() > FILE_LEN_MAX_BYTES => {
                return (
                    Settings::default(),
                    failed(&format!("expected at most {FILE_LEN_MAX_BYTES} bytes")),
                );
            }
            Ok(_) => {}
        }
        match std::fs::read_to_string(file)
            .map_err(|error| error.to_string())
            .and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()))
        {
            Ok(settings) => (settings, None),
            Err(error) => (Settings::default(), failed(&error)),
        }
    }

    /// The settings to save: where one is as it was at the start, which the command line may have changed,
    /// the one that was saved before.
    #[must_use]
    pub fn to_save(&self, at_start: &Settings, saved: &Settings) -> Settings {
        Settings {
            look: of(&self.look, &at_start.look, &saved.look),
            moves: of(&self.moves, &at_start.moves, &saved.moves),
            tabs: of(&self.tabs, &at_start.tabs, &saved.tabs),
            graphs: self.graphs.to_keep(&at_start.graphs, &saved.graphs),
            sensors: of(&self.sensors, &at_start.sensors, &saved.sensors),
            hides_tree: of(&self.hides_tree, &at_start.hides_tree, &saved.hides_tree),
            window: of(&self.window, &at_start.window, &saved.window),
        }
    }

    /// Write them into a file.
    ///
    /// # Errors
    /// If it cannot be written; the file stays as it was.
    pub fn store(&self, file: &Path) -> Result<(), Error> {
        let failed = |error: &dyn std::fmt::Display| Error {
            path: file.display().to_string(),
            error: error.to_string(),
        };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(&error))?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        atomic_file::replace(file, text.as_bytes()).map_err(|error| failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::metric::Metric;

    #[test]
    fn what_the_command_line_says_is_for_this_start_alone() {
        let before = Settings { look: Look::Dark, hides_tree: true, ..Settings::default() };
        let mut at_start = Settings { look: Look::Light, ..before.clone() };
        at_start.graphs.set_metrics(&[Metric::Load]);
        assert_eq!(at_start.to_save(&at_start, &before), before);
        let mut now = Settings { hides_tree: false, ..at_start.clone() };
        now.graphs.span.set_secs(60.0);
        let kept = now.to_save(&at_start, &before);
        assert_eq!((kept.look, kept.hides_tree), (Look::Dark, false));
        assert_eq!((kept.graphs.metrics(), kept.graphs.span), (Metric::USUAL.to_vec(), now.graphs.span));
        now.graphs.set_metrics(&[Metric::Cpu]);
        assert_eq!(now.to_save(&at_start, &before).graphs.metrics(), [Metric::Cpu]);
    }

    #[test]
    fn settings_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("visperf/viewer.json");
        assert_eq!(Settings::load(&file), (Settings::default(), None));
        let settings = Settings {
            look: Look::Light,
            tabs: Some(super::super::tabs::default_arrangement()),
            hides_tree: true,
            window: Some((1280.0, 800.0)),
            ..Settings::default()
        };
        settings.store(&file).unwrap();
        assert_eq!(Settings::load(&file), (settings, None));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("viewer.json");
        for text in ["{", "[1]", "{\"look\": \"pink\"}"] {
            std::fs::write(&file, text).unwrap();
            let (settings, error) = Settings::load(&file);
            assert_eq!(settings, Settings::default());
            assert!(error.unwrap().contains("are reset"), "{text}");
        }
        assert!(Settings::default().store(&file.join("x")).is_err());
    }
}
