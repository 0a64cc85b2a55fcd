//! Methods about the modules of a sensor: `sensor.modules`, `sensor.change_module`.
//!
//! Pure. Not here: the protocol of modules (the sensor has it).

use super::{Effect, Renamed, Request, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const RENAMED: &[Renamed] =
    &[("answering_secs", "seconds"), ("rate_hz", "rate"), ("retry_in_secs", "retry_in")];

/// List the modules of this sensor (third-party collectors and handlers), with their state.
///
/// The figures of collectors are in sensor.metrics, as module.NAME.FIGURE. Other daemons receive only names,
/// states and counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModulesParams {}

impl Request for ModulesParams {
    const METHOD: &'static str = "sensor.modules";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Modules;
}

/// Start, stop or reload a module of this sensor, as defined in the folder of modules.
///
/// `reload` reads the folder now and, if a name is given, restarts that module. `stop` holds until the module
/// is started, its file changes or the sensor restarts. An answer in progress is completed first. Fault
/// refused: the key is wrong, or the file of the module cannot be used. Fault not_found: there is no such
/// module. Fault unavailable: modules are disabled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeModuleParams {
    /// Name of the module, as in sensor.modules. Required except for `reload`.
    #[serde(default)]
    pub name: Option<String>,
    /// Action.
    pub act: ModuleAct,
    /// Content of the file sensor/modules.key in the state folder.
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

/// Action on a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleAct {
    /// Read its file now and restart it.
    #[default]
    Reload,
    /// Stop it until it is started or its file changes.
    Stop,
    /// Start it, even if it is quarantined or disabled.
    Start,
}

impl ModuleAct {
    /// The value as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ModuleAct::Reload => "reload",
            ModuleAct::Stop => "stop",
            ModuleAct::Start => "start",
        }
    }
}

/// Modules of a sensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Modules {
    /// Modules, sorted by name.
    pub modules: Vec<Module>,
    /// Whether the sensor runs modules.
    pub on: bool,
    /// Path of the folder of modules. Absent if modules are disabled, and for other daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Problem with the folder. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Module of a sensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Module {
    /// Name of the module: the name of its file in the folder.
    pub name: String,
    /// State of the module.
    pub state: ModuleState,
    /// Form of the module. Absent if its file cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<ModuleForm>,
    /// Number of calls answered since the sensor's start.
    pub calls: u64,
    /// Total time until those answers, in seconds.
    pub answering_secs: f64,
    /// CPU time used, in seconds.
    pub cpu_seconds: f64,
    /// Number of successful starts.
    pub starts: u64,
    /// Number of failures to start, to answer, or to respect a limit.
    pub failures: u64,
    /// Number of figures that it provides now.
    pub figures: u64,
    /// Process id. Absent if no process runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Rate of a collector, in calls per second. Absent for handlers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// Time until the next start, in seconds. Absent unless it waits for a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_in_secs: Option<f64>,
    /// Last error. Absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Name that the module reported for itself. Absent before its first start, and for other daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Kind of module. Absent before its first start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ModuleKind>,
    /// Data requested by a handler. Absent for collectors, and for other daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wants: Option<ModuleWants>,
    /// Number of entries waiting for a handler. Absent for collectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Program and its arguments, without environment variables, which may be secret. Absent if its file
    /// cannot be used, and for other daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<String>>,
    /// Last lines of its standard error. Absent if its file cannot be used, and for other daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Vec<String>>,
}

/// State of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleState {
    /// About to be started.
    Starting,
    /// Running and answering.
    Running,
    /// Failed; it is restarted later.
    Waiting,
    /// Failed too often; it is not restarted.
    Quarantined,
    /// Stopped by a command.
    Stopped,
    /// Disabled: its file says `on = false`.
    Off,
    /// Its file cannot be used.
    Refused,
    /// State that only a later version knows.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl ModuleState {
    /// The value as text.
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

/// Form of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleForm {
    /// Executable program.
    #[default]
    Executable,
    /// WebAssembly.
    Wasm,
    /// Form that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Kind of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleKind {
    /// Provides figures.
    #[default]
    Collector,
    /// Receives processes, events or metrics.
    Handler,
    /// Kind that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl ModuleKind {
    /// The value as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ModuleKind::Collector => "collector",
            ModuleKind::Handler => "handler",
            ModuleKind::Unknown => "unknown",
        }
    }
}

/// Data requested by a handler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleWants {
    /// Requested samples of processes. Absent if none are requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<WantedProcesses>,
    /// Kinds of the requested events. Absent if none are requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Names of the requested metrics. Absent if none are requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
}

/// Samples of processes requested by a handler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WantedProcesses {
    /// Rate, in samples per second.
    pub rate_hz: f64,
    /// Filter; empty if all processes pass.
    pub filter: String,
}
