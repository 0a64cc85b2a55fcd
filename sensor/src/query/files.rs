//! `sensor.files` and `sensor.filters`: what is read, by which filter, how far, and what is wrong.
//!
//! Not here: the choosing of filters (`filters`), the reading (`tail`).

use super::declared;
use crate::config::Config;
use crate::filters::Filtering;
use crate::tail::board::FileState;
use crate::tail::standing::Standing;
use globset::Glob;
use log_filters::filter::Filter;
use rpc::fault::Fault;
use rpc::method::Method;
use rpc::value::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `sensor.files`; `files` tells the present state.
pub fn files_method(config: &Config, files: impl Fn() -> Vec<FileState> + Send + Sync + 'static) -> Method {
    let clusters: Vec<_> = config
        .tails
        .iter()
        .filter_map(|tail| {
            Some((Glob::new(&tail.spec.glob).ok()?.compile_matcher(), tail.spec.cluster.clone()))
        })
        .collect();
    let cluster = move |path: &Path| {
        let tail = clusters.iter().find(|(glob, _)| glob.is_match(path));
        tail.map(|(_, cluster)| cluster.clone()).unwrap_or_default()
    };
    declared::sensor_files().handler_now(move |_| {
        let shown = files().iter().map(|file| file_value(file, &cluster(&file.path))).collect();
        Ok(Value::object([("files", Value::Array(shown))]))
    })
}

fn file_value(file: &FileState, cluster: &str) -> Value {
    let mut members = vec![
        ("path", Value::Text(file.path.display().to_string())),
        ("filter", Value::Text(file.filter.to_string())),
        ("cluster", Value::Text(cluster.to_owned())),
        ("generation", Value::UInt(file.generation.into())),
        ("state", Value::Text(file.standing.as_str().to_owned())),
        ("size", Value::UInt(file.size)),
        ("offset", Value::UInt(file.offset)),
        ("lag", Value::UInt(file.lag_bytes)),
        ("lines", Value::UInt(file.lines)),
        ("events", Value::UInt(file.events)),
        ("unknown", Value::UInt(file.rejects)),
        ("gaps", Value::UInt(file.gaps)),
        ("gap_bytes", Value::UInt(file.gap_bytes)),
        ("gaps_unknown", Value::UInt(file.gaps_unknown)),
        ("incomplete", Value::UInt(file.incomplete)),
        ("oversize", Value::UInt(file.oversize)),
        ("skipped_nul_bytes", Value::UInt(file.nul_bytes)),
        ("rotated_open", Value::UInt(file.rotated_open as u64)),
        ("health", Value::Text(file.standing.told())),
    ];
    let path = |path: &PathBuf| Value::Text(path.display().to_string());
    members.extend(file.same_as.as_ref().map(|owner| ("same_as", path(owner))));
    if let Standing::Gone { since: Some(since), .. } = file.standing {
        members.push(("gone_since", Value::Double(since.secs_f64())));
    }
    Value::object(members)
}

/// `sensor.filters`.
#[must_use]
pub fn filters_method(filtering: &Arc<Filtering>) -> Method {
    let filtering = Arc::clone(filtering);
    declared::sensor_filters().handler_now(move |params| {
        let shown = match params.text("name")? {
            None => filtering.registry().iter().map(|filter| filter_value(&filtering, filter)).collect(),
            Some(name) => {
                let filter = filtering.registry().get(name).ok_or_else(|| unknown(&filtering, name))?;
                let mut value = filter_value(&filtering, filter);
                if let Value::Struct(members) = &mut value {
                    members.push(("text".into(), Value::Text(filter.text().to_owned())));
                }
                vec![value]
            }
        };
        Ok(Value::object([("filters", Value::Array(shown))]))
    })
}

fn unknown(filtering: &Filtering, name: &str) -> Fault {
    let known: Vec<_> = filtering.registry().iter().map(|filter| filter.name()).collect();
    Fault::not_found(format!("no filter is called {name:?}; there are {}", known.join(", ")))
}

fn filter_value(filtering: &Filtering, filter: &Filter) -> Value {
    let texts = |texts: &[String]| Value::array(texts.iter().cloned().map(Value::Text));
    let origin = filtering.origin(filter.name());
    Value::object([
        ("name", Value::Text(filter.name().to_owned())),
        ("product", Value::Text(filter.product().to_owned())),
        ("description", Value::Text(filter.description().to_owned())),
        ("versions", Value::Text(filter.versions().to_owned())),
        ("origin", Value::Text(origin.map_or("shipped".to_owned(), |path| path.display().to_string()))),
        ("rules", Value::UInt(filter.rules() as u64)),
        ("tests", Value::UInt(filter.tests() as u64)),
        ("names", texts(filter.name_globs())),
        ("paths", texts(filter.paths())),
    ])
}
