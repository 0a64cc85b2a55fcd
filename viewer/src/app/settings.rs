//! What is kept from one start to the next: theme, tabs, what was moved, the size of the window.
//!
//! Rule: a file that cannot be read or is of another version is told once, and the usual is taken instead.

use super::tabs::Tab;
use crate::graphs::kept as of;
use crate::layout::Moves;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes; ours have some thousand.
const FILE_LEN_MAX_BYTES: u64 = 1 << 20;

/// Dark or light.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// As the desktop says.
    #[default]
    System,
    /// Light on dark.
    Dark,
    /// Dark on light.
    Light,
}

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Dark or light.
    pub look: Look,
    /// What was moved on the map.
    pub moves: Moves,
    /// The tabs and how they are arranged.
    pub tabs: Option<egui_tiles::Tree<Tab>>,
    /// What the graphs show, and how.
    pub graphs: crate::graphs::Choice,
    /// Sensors that are asked at their addresses.
    pub sensors: Vec<std::net::SocketAddr>,
    /// Whether the list of hosts is hidden.
    pub hides_tree: bool,
    /// Width and height of the window, in points.
    pub window: Option<(f32, f32)>,
}

/// Why settings are not kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the settings of the viewer: {error}: {path}")]
pub struct Error {
    path: String,
    error: String,
}

/// Where they are kept: in the user's folder of configuration, if there is one.
#[must_use]
pub fn usual_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("visperf/viewer.json"))
}

impl Settings {
    /// Those of a file; the usual ones, and what is wrong, where there is a file that cannot be used.
    #[must_use]
    pub fn load(file: &Path) -> (Settings, Option<String>) {
        let told = |error: &dyn std::fmt::Display| {
            Some(format!("settings of the viewer are begun anew: {error}: {}", file.display()))
        };
        match file.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (Settings::default(), None),
            Err(error) => return (Settings::default(), told(&error)),
            Ok(about) if about.len() > FILE_LEN_MAX_BYTES => {
                return (Settings::default(), told(&format!("expected at most {FILE_LEN_MAX_BYTES} bytes")));
            }
            Ok(_) => {}
        }
        match std::fs::read_to_string(file)
            .map_err(|error| error.to_string())
            .and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()))
        {
            Ok(settings) => (settings, None),
            Err(error) => (Settings::default(), told(&error)),
        }
    }

    /// What of these is kept: where nothing was changed since the begin, when the command line had its say, what was kept before.
    #[must_use]
    pub fn to_keep(&self, begun: &Settings, before: &Settings) -> Settings {
        Settings {
            look: of(&self.look, &begun.look, &before.look),
            moves: of(&self.moves, &begun.moves, &before.moves),
            tabs: of(&self.tabs, &begun.tabs, &before.tabs),
            graphs: self.graphs.to_keep(&begun.graphs, &before.graphs),
            sensors: of(&self.sensors, &begun.sensors, &before.sensors),
            hides_tree: of(&self.hides_tree, &begun.hides_tree, &before.hides_tree),
            window: of(&self.window, &begun.window, &before.window),
        }
    }

    /// Keep them in a file.
    ///
    /// # Errors
    /// If it cannot be written; what was kept before stays then.
    pub fn store(&self, file: &Path) -> Result<(), Error> {
        let failed = |error: &dyn std::fmt::Display| Error {
            path: file.display().to_string(),
            error: error.to_string(),
        };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(&error))?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        let beside = file.with_extension("json.new");
        std::fs::write(&beside, text)
            .and_then(|()| std::fs::rename(&beside, file))
            .map_err(|error| failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::metric::Metric;

    #[test]
    fn what_the_command_line_says_is_for_this_start_alone() {
        let before = Settings { look: Look::Dark, hides_tree: true, ..Settings::default() };
        let mut begun = Settings { look: Look::Light, ..before.clone() };
        begun.graphs.set_metrics(&[Metric::Load]);
        assert_eq!(begun.to_keep(&begun, &before), before);
        let mut now = Settings { hides_tree: false, ..begun.clone() };
        now.graphs.span.set_secs(60.0);
        let kept = now.to_keep(&begun, &before);
        assert_eq!((kept.look, kept.hides_tree), (Look::Dark, false));
        assert_eq!((kept.graphs.metrics(), kept.graphs.span), (Metric::USUAL.to_vec(), now.graphs.span));
        now.graphs.set_metrics(&[Metric::Cpu]);
        assert_eq!(now.to_keep(&begun, &before).graphs.metrics(), [Metric::Cpu]);
    }

    #[test]
    fn settings_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("visperf/viewer.json");
        assert_eq!(Settings::load(&file), (Settings::default(), None));
        let settings = Settings {
            look: Look::Light,
            tabs: Some(super::super::tabs::usual()),
            hides_tree: true,
            window: Some((1280.0, 800.0)),
            ..Settings::default()
        };
        settings.store(&file).unwrap();
        assert_eq!(Settings::load(&file), (settings, None));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("viewer.json");
        for text in ["{", "[1]", "{\"look\": \"pink\"}"] {
            std::fs::write(&file, text).unwrap();
            let (settings, told) = Settings::load(&file);
            assert_eq!(settings, Settings::default());
            assert!(told.unwrap().contains("begun anew"), "{text}");
        }
        assert!(Settings::default().store(&file.join("x")).is_err());
    }
}
