//! `visperf domain create`: creates a domain, with this host as its issuer and first member.
//!
//! Not here: the files (`overlay::identity::domain_files`).

use crate::command::membership::{self, State, quoted};
use crate::exit::Failure;
use crate::output::{Output, note, times};
use overlay::identity::domain_files::DomainFiles;
use overlay::identity::refused::Refused;
use serde_json::json;
use wire::id::DomainName;

/// Create a domain on this host, which becomes its issuer and first member
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf domain create UT-ICL
  visperf domain create UT-ICL --state ./head --host head01")]
pub(crate) struct Args {
    /// Name of the domain: letters, digits, '.', '_' and '-'
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    state: State,
    /// Name of this host in the domain [default: its system host name]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Create the domain, or complete an earlier attempt.
///
/// # Errors
/// If this host has another domain, or a file cannot be created.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let domain =
        DomainName::try_from(args.name.as_str()).map_err(|error| Failure::Usage(error.to_string()))?;
    let host = membership::host(args.host.as_deref())?;
    let key = args.state.key()?;
    let files = DomainFiles::new(&args.state.open()?, key.clone());
    let created = files.create(&domain, &host, times::now()).map_err(membership::failure)?;
    let certificate =
        created.membership.certificate().map_err(|error: Refused| Failure::Failed(error.to_string()))?;
    let mut output = Output::stdout();
    if args.json {
        output.json(&json!({
            "domain": domain.as_str(), "root": created.root.to_string(), "issuer": key.peer().to_string(),
            "host": certificate.host.as_str(), "created": created.changed,
        }))?;
        return output.flush();
    }
    let how = if created.changed { "is created on" } else { "was created before on" };
    output.line(&format!("domain {domain} {how} {}", certificate.host))?;
    output.line(&format!("  root    {}  (a directory's operator admits the domain by it)", created.root))?;
    output.line(&format!("  issuer  {}  (this host's daemon)", key.peer()))?;
    output.flush()?;
    let root_key = args.state.open()?.join("domain/root.key");
    if root_key.exists() {
        note(&format!(
            "{} is the domain's root key, and anyone who has it controls the domain: store a copy in a safe place",
            quoted(&root_key)
        ));
    }
    membership::next(&[
        (args.state.start_sensor(), "start this host's daemon; others can join while it runs"),
        (args.state.with("visperf token create"), "make a line to paste on the next host"),
    ]);
    Ok(())
}
