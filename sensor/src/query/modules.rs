//! `sensor.modules` and `sensor.change_module`: the site's modules of this sensor, and their state.
//!
//! Rules: no parameter names a file, because only the folder of modules determines what runs. A change is
//! accepted only from a direct client of this daemon that has the key of its state folder, and is never
//! forwarded. Other daemons receive names, states and numbers only: no text of a module, of its file or of a
//! path, which may contain anything.
//! Not here: the modules (`module`).

use crate::module::protocol::{Flow, Hello, ModuleRequest};
use crate::module::spec::Runs;
use crate::module::worker::{Handle, ModuleStatus, Refusal};
use rpc::dispatch::forward::Caller;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use wire::api::modules::{
    ChangeModuleParams, Module, ModuleAct, ModuleForm, ModuleKind, ModuleState, ModuleWants, Modules,
    ModulesParams, WantedProcesses,
};
use wire::fault;

/// Creates the methods; if modules are off they say so.
#[must_use]
pub fn methods(modules: Option<Handle>) -> [Method; 2] {
    let listed = modules.clone();
    [
        typed::method(move |caller, ModulesParams {}| std::future::ready(Ok(list(listed.as_ref(), caller)))),
        typed::method(move |caller, params: ChangeModuleParams| {
            let (modules, caller) = (modules.clone(), *caller);
            async move {
                let modules = modules.as_ref().ok_or(Refusal::Off)?;
                if !modules.is_key(&params.key) {
                    return Err(no_key(modules));
                }
                let act = params.act;
                if params.name.is_none() && act != ModuleAct::Reload {
                    let word = act.as_str();
                    return Err(Fault::invalid_params(format!(
                        "name: expected the module to {word}, found none"
                    )));
                }
                modules.order(params.name, act).await?;
                Ok(list(Some(modules), &caller))
            }
        }),
    ]
}

fn no_key(modules: &Handle) -> Fault {
    let file = modules.key_file().display();
    Fault::new(
        fault::REFUSED,
        format!(
            "key: expected what {file} holds, which root and the sensor's user can read; as one of them give the order by \
             `visperf modules`, which reads it there"
        ),
    )
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        let code = match refusal {
            Refusal::Off | Refusal::Ended => fault::UNAVAILABLE,
            Refusal::Unknown(_) => fault::NOT_FOUND,
            Refusal::Refused { .. } => fault::REFUSED,
            Refusal::Busy(_) => fault::BUSY,
        };
        Fault::new(code, refusal.to_string())
    }
}

fn list(modules: Option<&Handle>, caller: &Caller) -> Modules {
    let Some(modules) = modules else { return Modules::default() };
    let is_own = caller.peer.is_none();
    let mut all: Vec<Module> =
        modules.statuses().iter().map(|status| to_api(status, modules, is_own)).collect();
    all.extend(modules.refused().into_iter().map(|(name, why)| Module {
        name,
        state: ModuleState::Refused,
        last_error: Some(error(why, is_own)),
        ..Module::default()
    }));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Modules {
        modules: all,
        on: true,
        folder: is_own.then(|| modules.folder().display().to_string()),
        trouble: modules.trouble().map(|trouble| error(trouble, is_own)),
    }
}

/// Returns the error text; to other daemons only that there was an error.
fn error(why: String, is_own: bool) -> String {
    if is_own { why } else { "shown on its own host".to_owned() }
}

fn to_api(status: &ModuleStatus, modules: &Handle, is_own: bool) -> Module {
    let counts = status.counts;
    let mut module = Module {
        name: status.name.clone(),
        state: status.state.into(),
        form: Some(match status.runs {
            Runs::Wasm { .. } => ModuleForm::Wasm,
            Runs::Executable { .. } => ModuleForm::Executable,
        }),
        calls: counts.calls_total,
        answering_secs: counts.answering.as_secs_f64(),
        cpu_seconds: status.cpu.as_secs_f64(),
        starts: counts.starts_total,
        failures: counts.failures_total,
        figures: modules.figure_cache().count(&status.name) as u64,
        pid: status.pid,
        rate_hz: status.rate_hz,
        retry_in_secs: status.retry_in().map(|wait| wait.as_secs_f64()),
        last_error: status.last_error.clone().map(|why| error(why, is_own)),
        runs: is_own.then(|| runs(&status.runs)),
        stderr: is_own.then(|| status.tail.lines()),
        ..Module::default()
    };
    if let Some(Hello { name, wants }) = &status.hello {
        module.program = is_own.then(|| name.to_string());
        module.kind = Some(match wants {
            ModuleRequest::Collector { .. } => ModuleKind::Collector,
            ModuleRequest::Handler(_) => ModuleKind::Handler,
        });
        if let ModuleRequest::Handler(flow) = wants {
            module.wants = is_own.then(|| wanted(flow));
            module.waiting = Some(status.waiting as u64);
        }
    }
    module
}

fn wanted(flow: &Flow) -> ModuleWants {
    let processes = flow
        .processes
        .as_ref()
        .map(|wanted| WantedProcesses { rate_hz: wanted.rate.hz(), filter: wanted.filter.to_string() });
    let kinds = flow.events.as_ref();
    ModuleWants {
        processes,
        events: kinds.map(|kinds| kinds.iter().map(|kind| kind.as_str().to_owned()).collect()),
        metrics: flow.metrics.iter().map(ToString::to_string).collect(),
    }
}

/// Returns the command line, without environment variables, which may be secret.
fn runs(runs: &Runs) -> Vec<String> {
    match runs {
        Runs::Executable { program, arguments, .. } => {
            std::iter::once(program.display().to_string()).chain(arguments.iter().cloned()).collect()
        }
        Runs::Wasm { file } => vec![file.display().to_string()],
    }
}
