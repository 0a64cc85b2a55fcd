//! Index of jobs of a directory: asks the representatives of domains.
//!
//! Not here: when they are asked (`directory::job_index`), how one is found (`remote_domains`).

use super::remote_domains::RemoteDomains;
use crate::hop;
use directory::config::JobsConfig;
use directory::handle::Handle;
use directory::job_index::{Asked, Domains, Indexing};
use rpc::dispatch::typed;
use std::path::Path;
use std::time::Duration;
use wire::api::Request;
use wire::api::job_index::JobIndexParams;
use wire::id::DomainName;

/// Timeout of a page.
const DEADLINE: Duration = Duration::from_secs(10);

/// Hops that are left to a question: a daemon that represents the domain no more forwards it.
const HOPS: u8 = 1;

/// The index in the folder of a directory.
pub(crate) fn open(folder: &Path, config: JobsConfig, table: Handle, others: RemoteDomains) -> Indexing {
    Indexing::new(folder, config, table, Box::new(Asker(others)))
}

struct Asker(RemoteDomains);

impl Domains for Asker {
    fn page<'a>(&'a self, domain: &'a DomainName, params: &'a JobIndexParams) -> Asked<'a> {
        Box::pin(async move {
            let params = typed::params_of(params)?;
            let question = hop::question(JobIndexParams::METHOD, params, DEADLINE, HOPS);
            let answer = self.0.ask(domain, question, DEADLINE).await?;
            typed::answer_of::<JobIndexParams>(answer)
        })
    }
}
