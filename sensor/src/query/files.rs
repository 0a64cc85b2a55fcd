//! `sensor.files` and `sensor.filters`: which files are read by which filter, how far, and what failed.
//!
//! Not here: the choice of filters (`filters`), the reading (`tail`).

use crate::config::Config;
use crate::filters::FilterSet;
use crate::tail::path_status::PathStatus;
use crate::tail::status::FileStatus;
use globset::Glob;
use log_filters::filter::Filter;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::path::Path;
use std::sync::Arc;
use wire::api::UnixTime;
use wire::api::files::{Files, FilesParams, Filters, FiltersParams, LogFile, LogFilter};

/// `sensor.files`; `files` returns the present state.
pub fn files_method(config: &Config, files: impl Fn() -> Vec<FileStatus> + Send + Sync + 'static) -> Method {
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
    typed::method(move |_, FilesParams {}| {
        let files = files().iter().map(|file| log_file(file, cluster(&file.path))).collect();
        std::future::ready(Ok(Files { files }))
    })
}

fn log_file(file: &FileStatus, cluster: String) -> LogFile {
    let path = |path: &Path| path.display().to_string();
    LogFile {
        path: path(&file.path),
        filter: file.filter.to_string(),
        cluster,
        generation: file.generation,
        state: file.status.state(),
        size_bytes: file.size,
        offset_bytes: file.offset,
        lag_bytes: file.lag_bytes,
        lines: file.lines,
        events: file.events,
        unknown: file.rejects,
        gaps: file.gaps,
        gap_bytes: file.gap_bytes,
        gaps_unknown: file.gaps_unknown,
        incomplete: file.incomplete,
        oversize: file.oversize,
        skipped_nul_bytes: file.nul_bytes,
        rotated_open: file.rotated_open as u64,
        health: file.status.to_string(),
        same_as: file.same_as.as_deref().map(path),
        gone_since: match file.status {
            PathStatus::Gone { since, .. } => since.map(UnixTime),
            PathStatus::Following | PathStatus::Awaited => None,
            PathStatus::Unreadable(_)
            | PathStatus::NoFilter(_)
            | PathStatus::NoLog(_)
            | PathStatus::Trouble(_) => None,
        },
    }
}

/// `sensor.filters`.
#[must_use]
pub fn filters_method(filtering: &Arc<FilterSet>) -> Method {
    let filtering = Arc::clone(filtering);
    typed::method(move |_, FiltersParams { name }| std::future::ready(filters(&filtering, name.as_deref())))
}

fn filters(filtering: &FilterSet, name: Option<&str>) -> Result<Filters, Fault> {
    let filters = match name {
        None => filtering.registry().iter().map(|filter| log_filter(filtering, filter)).collect(),
        Some(name) => {
            let filter = filtering.registry().get(name).ok_or_else(|| unknown(filtering, name))?;
            vec![LogFilter { text: Some(filter.text().to_owned()), ..log_filter(filtering, filter) }]
        }
    };
    Ok(Filters { filters })
}

fn unknown(filtering: &FilterSet, name: &str) -> Fault {
    let known: Vec<_> = filtering.registry().iter().map(|filter| filter.name()).collect();
    Fault::not_found(format!("no filter is called {name:?}; there are {}", known.join(", ")))
}

fn log_filter(filtering: &FilterSet, filter: &Filter) -> LogFilter {
    let origin = filtering.origin(filter.name());
    LogFilter {
        name: filter.name().to_owned(),
        product: filter.product().to_owned(),
        description: filter.description().to_owned(),
        versions: filter.versions().to_owned(),
        origin: origin.map_or("shipped".to_owned(), |path| path.display().to_string()),
        rules: filter.rules() as u64,
        tests: filter.tests() as u64,
        names: filter.name_globs().to_vec(),
        paths: filter.paths().to_vec(),
        text: None,
    }
}
