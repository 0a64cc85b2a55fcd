//! Methods about the modules of a sensor: `sensor.modules`, `sensor.change_module`.
//!
//! Pure. Not here: the protocol of modules (the sensor has it).

use super::{Effect, Renamed, Request, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const RENAMED: &[Renamed] =
    &[("answering_secs", "seconds"), ("rate_hz", "rate"), ("retry_in_secs", "retry_in")];

/// The modules of this sensor: collectors and handlers that others wrote, and how they fare.
///
/// What collectors give is in sensor.metrics, as module.NAME.FIGURE. Other daemons are given states and counts alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModulesParams {}

impl Request for ModulesParams {
    const METHOD: &'static str = "sensor.modules";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Modules;
}

/// Start, stop or reload a module of this sensor, as its folder names it.
///
/// reload looks at the folder now, and restarts the module if one is named; stop holds until start, another file, or the sensor's next
/// start. An answer under way is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeModuleParams {
    /// Which, as sensor.modules has it.
    #[serde(default)]
    pub name: Option<String>,
    /// What to do.
    pub act: ModuleAct,
    /// What sensor/modules.key in the state folder holds.
    #[serde(default)]
    pub key: String,
}

impl Request for ChangeModuleParams {
    const METHOD: &'static str = "sensor.change_module";
    const EFFECT: Effect = Effect::Changes;
    const SUBJECT: Subject = Subject::Daemon;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Modules;
}

/// What to do with a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleAct {
    /// Look at its file now, and restart it.
    #[default]
    Reload,
    /// End it, until it is started or its file changes.
    Stop,
    /// Start it, also one that is quarantined or off.
    Start,
}

impl ModuleAct {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ModuleAct::Reload => "reload",
            ModuleAct::Stop => "stop",
            ModuleAct::Start => "start",
        }
    }
}

/// The modules of a sensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Modules {
    /// Each of them, by name.
    pub modules: Vec<Module>,
    /// Whether the sensor runs modules.
    pub on: bool,
    /// The folder that names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// What is wrong with the folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Module {
    /// Its name, that of its file in the folder.
    pub name: String,
    /// What it is doing: starting, running, waiting (it failed and is started again later), quarantined (it failed too often), stopped (by
    /// an order), off (by its file) or refused (its file cannot be used).
    pub state: ModuleState,
    /// What runs; left out where its file cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<ModuleForm>,
    /// Calls that it answered, since the sensor's start.
    pub calls: u64,
    /// How long it took to answer them.
    pub answering_secs: f64,
    /// CPU time that it used.
    pub cpu_seconds: f64,
    /// Starts that led to a hello.
    pub starts: u64,
    /// What it did that it should not.
    pub failures: u64,
    /// Figures that it gives now.
    pub figures: u64,
    /// The number of its process, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Of a collector: calls a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// When it is started again, where it waits for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_in_secs: Option<f64>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// What it is for, once it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ModuleKind>,
    /// Of a handler: what it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wants: Option<ModuleWants>,
    /// Of a handler: entries that wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// The program and its arguments, without its variables, which may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<String>>,
    /// What it wrote last on its standard error, line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Vec<String>>,
}

/// What a module is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleState {
    /// It is to be started.
    Starting,
    /// It answers.
    Running,
    /// It failed, and is started again later.
    Waiting,
    /// It failed too often.
    Quarantined,
    /// It was ordered to stop.
    Stopped,
    /// Its file says `on = false`.
    Off,
    /// Its file cannot be used.
    Refused,
    /// A state that a later version has.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl ModuleState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ModuleState::Starting => "starting",
            ModuleState::Running => "running",
            ModuleState::Waiting => "waiting",
            ModuleState::Quarantined => "quarantined",
            ModuleState::Stopped => "stopped",
            ModuleState::Off => "off",
            ModuleState::Refused => "refused",
            ModuleState::Unknown => "unknown",
        }
    }
}

/// What runs of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleForm {
    /// A program.
    #[default]
    Executable,
    /// WebAssembly.
    Wasm,
    /// A word that a later version has.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// What a module is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleKind {
    /// It gives figures.
    #[default]
    Collector,
    /// It is given what flows.
    Handler,
    /// A word that a later version has.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl ModuleKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ModuleKind::Collector => "collector",
            ModuleKind::Handler => "handler",
            ModuleKind::Unknown => "unknown",
        }
    }
}

/// What a handler is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleWants {
    /// Samples of processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<WantedProcesses>,
    /// Events of these kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Metrics of these names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
}

/// Samples of processes that a handler is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WantedProcesses {
    /// Samples a second.
    pub rate_hz: f64,
    /// Which of them pass.
    pub filter: String,
}
