//! `sensor.modules` and `sensor.change_module`: what others wrote for this sensor, and how it fares.
//!
//! Rules: nothing names a file, for what runs is the folder's to say; a change is taken from who asks this daemon itself and has the
//! key of its state folder, and never handed on. Other daemons are told states and counts alone: nothing that a module, its file or a
//! path says, which may hold anything.
//! Not here: the modules (`module`).

use super::declared;
use crate::module::desk::{Act, Handle, Refusal, Told};
use crate::module::protocol::{Flow, Hello, Wants};
use crate::module::spec::Runs;
use rpc::elsewhere::Caller;
use rpc::fault::{self, Fault};
use rpc::method::{Declaration, Method};
use rpc::params::{Parameter, Type};
use rpc::value::{Name, Value};

/// The methods; where there are no modules they say so.
#[must_use]
pub fn methods(modules: Option<Handle>) -> [Method; 2] {
    let listed = modules.clone();
    [
        declared::sensor_modules()
            .handler_for(move |caller, _| std::future::ready(Ok(list(listed.as_ref(), caller)))),
        declared::sensor_change_module().handler_for(move |caller, params| {
            let (modules, caller) = (modules.clone(), *caller);
            async move {
                let modules = modules.as_ref().ok_or(Refusal::Off)?;
                if !modules.is_key(params.text("key")?.unwrap_or_default()) {
                    return Err(no_key(modules));
                }
                let word = params.need_text("act")?;
                let act = Act::from_word(word)
                    .ok_or_else(|| Fault::internal("an act that is declared is known"))?;
                let name = params.text("name")?.map(ToOwned::to_owned);
                if name.is_none() && act != Act::Reload {
                    return Err(Fault::invalid_params(format!(
                        "name: expected the module to {word}, found none"
                    )));
                }
                modules.order(name, act).await?;
                Ok(list(Some(modules), &caller))
            }
        }),
    ]
}

pub(super) fn declaration() -> Declaration {
    Declaration::new("sensor.modules", "the modules of this sensor: collectors and handlers that others wrote, and how they fare")
        .reading()
        .details(
            "state: starting, running, waiting (it failed and is tried again), quarantined (it failed too often), stopped, off or \
             refused (its file cannot be used). What collectors give is in sensor.metrics, as module.NAME.FIGURE.",
        )
}

pub(super) fn declaration_of_change() -> Declaration {
    Declaration::new("sensor.change_module", "start, stop or reload a module of this sensor, as its folder names it")
        .details(
            "reload looks at the folder now, and starts the module anew if one is named; stop holds until start, another file, or \
             the sensor's next start. An answer under way is waited for.",
        )
        .parameter(Parameter::new("name", Type::Text, "which, as sensor.modules tells"))
        .parameter(Parameter::new("act", Type::choice(&Act::WORDS), "what to do").required())
        .parameter(Parameter::new("key", Type::Text, "what sensor/modules.key in the state folder holds"))
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

fn list(modules: Option<&Handle>, caller: &Caller) -> Value {
    let Some(modules) = modules else {
        return Value::object([("modules", Value::Array(Vec::new())), ("on", Value::Bool(false))]);
    };
    let is_own = caller.peer.is_none();
    let told = modules.told();
    let mut all: Vec<(String, Value)> =
        told.iter().map(|told| (told.name.clone(), shown(told, modules, is_own))).collect();
    all.extend(modules.refused().into_iter().map(|(name, why)| {
        let value = Value::object([
            ("name", Value::Text(name.clone())),
            ("state", Value::from("refused")),
            ("last_error", error(why, is_own)),
        ]);
        (name, value)
    }));
    all.sort_by(|one, other| one.0.cmp(&other.0));
    let mut members: Vec<(Name, Value)> = vec![
        ("modules".into(), Value::array(all.into_iter().map(|(_, value)| value))),
        ("on".into(), Value::Bool(true)),
    ];
    if is_own {
        members.push(("folder".into(), Value::Text(modules.folder().display().to_string())));
    }
    members.extend(modules.trouble().map(|trouble| (Name::Borrowed("trouble"), error(trouble, is_own))));
    Value::Struct(members)
}

/// What went wrong; to other daemons only that something did.
fn error(why: String, is_own: bool) -> Value {
    Value::Text(if is_own { why } else { "its own host tells".to_owned() })
}

fn shown(told: &Told, modules: &Handle, is_own: bool) -> Value {
    let counts = told.counts;
    let mut members: Vec<(Name, Value)> = vec![
        ("name".into(), Value::Text(told.name.clone())),
        ("state".into(), Value::from(told.state.as_str())),
        (
            "form".into(),
            Value::from(if matches!(told.runs, Runs::Wasm { .. }) { "wasm" } else { "executable" }),
        ),
        ("calls".into(), Value::UInt(counts.calls_total)),
        ("seconds".into(), Value::Double(counts.answering.as_secs_f64())),
        ("cpu_seconds".into(), Value::Double(told.cpu.as_secs_f64())),
        ("starts".into(), Value::UInt(counts.starts_total)),
        ("failures".into(), Value::UInt(counts.failures_total)),
        ("figures".into(), Value::UInt(modules.board().count(&told.name) as u64)),
    ];
    let mut maybe = |name: &'static str, value: Option<Value>| {
        members.extend(value.map(|value| (Name::Borrowed(name), value)));
    };
    maybe("pid", told.pid.map(|pid| Value::UInt(pid.into())));
    maybe("rate", told.rate_hz.map(Value::Double));
    maybe("retry_in", told.retry_in().map(|wait| Value::Double(wait.as_secs_f64())));
    maybe("last_error", told.last_error.clone().map(|why| error(why, is_own)));
    if let Some(Hello { name, wants }) = &told.hello {
        maybe("program", is_own.then(|| Value::from(name.as_str())));
        maybe("kind", Some(Value::from(wants.as_str())));
        if let Wants::Handler(flow) = wants {
            maybe("wants", is_own.then(|| wanted(flow)));
            maybe("waiting", Some(Value::UInt(told.waiting as u64)));
        }
    }
    if is_own {
        members.push(("runs".into(), runs(&told.runs)));
        members.push(("stderr".into(), Value::array(told.tail.lines().into_iter().map(Value::Text))));
    }
    Value::Struct(members)
}

fn wanted(flow: &Flow) -> Value {
    let mut members: Vec<(Name, Value)> = Vec::new();
    if let Some(wanted) = &flow.processes {
        let processes =
            [("rate", Value::Double(wanted.rate.hz())), ("filter", Value::Text(wanted.filter.to_string()))];
        members.push(("processes".into(), Value::object(processes)));
    }
    if let Some(kinds) = &flow.events {
        members.push(("events".into(), Value::array(kinds.iter().map(|kind| Value::from(kind.as_str())))));
    }
    if !flow.metrics.is_empty() {
        members.push((
            "metrics".into(),
            Value::array(flow.metrics.iter().map(|name| Value::from(name.as_str()))),
        ));
    }
    Value::Struct(members)
}

/// What runs, without its variables, which may be secret.
fn runs(runs: &Runs) -> Value {
    match runs {
        Runs::Executable { program, arguments, .. } => {
            let words = std::iter::once(program.display().to_string()).chain(arguments.iter().cloned());
            Value::array(words.map(Value::Text))
        }
        Runs::Wasm { file } => Value::array([Value::Text(file.display().to_string())]),
    }
}
