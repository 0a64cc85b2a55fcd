//! `visperf account`: the accounts of this host's proxy.
//!
//! Rule: a secret is printed once, by the command that creates it, and is never stored in clear text.
//! Not here: what an account is (`proxy::account`), its file (`proxy::account_file`).

mod list;
mod pass;

use crate::command::membership::State;
use crate::exit::Failure;
use crate::output::{Output, note};
use clap::Subcommand;
use data_encoding::BASE32_NOPAD;
use proxy::account::{self, Account, Name, Proofs, REALM_DEFAULT};
use proxy::account_file;
use proxy::grant::{Chosen, Class, Grant, NAMES_MAX, Rights};
use proxy::htdigest;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use wire::id::{DomainName, HostName};

/// Random bytes in a secret: 160 bits, 32 characters.
const SECRET_LEN_BYTES: usize = 20;

/// Manage the accounts of this host's proxy
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "Examples:
  visperf account add ana --domain UT-ICL
  visperf account add board --all-domains --calls figures
  visperf account list
  visperf account remove ana";

#[derive(Debug, Subcommand)]
enum Action {
    Add(Add),
    Remove(Remove),
    List(list::Args),
    ImportHtdigest(Import),
    Pass(pass::Args),
}

/// Permissions of an account.
#[derive(Debug, clap::Args)]
struct Granted {
    /// Grant access to this domain; may be repeated
    #[arg(long, value_name = "DOMAIN", required_unless_present = "all_domains", conflicts_with = "all_domains", value_parser = domain)]
    domain: Vec<DomainName>,
    /// Grant access to all domains
    #[arg(long)]
    all_domains: bool,
    /// Restrict access to this host; may be repeated [default: all hosts of its domains]
    #[arg(long, value_name = "HOST", value_parser = host)]
    host: Vec<HostName>,
    /// Allow this class of methods: figures, logs, grid, proxy or steering; may be repeated [default:
    /// figures, logs, grid]
    #[arg(long, value_name = "CLASS", value_parser = class)]
    calls: Vec<Class>,
}

/// Add an account and print its secret, once
///
/// The secret is generated here and stored only as hashes: note it down, or remove the account and add it
/// again. A running proxy accepts the account within a second.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf account add ana --domain UT-ICL
  visperf account add wn --domain UT-ICL --host wn01 --host wn02
  visperf account add old-script --domain UT-ICL --legacy    MD5 will do, too")]
struct Add {
    /// Name of the account: letters, digits and . _ - @ +
    #[arg(value_name = "NAME", value_parser = name)]
    name: Name,
    #[command(flatten)]
    granted: Granted,
    /// Grant the rights of an operator, except for logins with MD5
    #[arg(long)]
    operator: bool,
    /// Also allow logins with MD5, for clients that support nothing else
    #[arg(long)]
    legacy: bool,
    /// Realm of the first account; all others have the same [default: visperf]
    #[arg(long, value_name = "REALM")]
    realm: Option<String>,
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Remove an account; a running proxy rejects it within a second
#[derive(Debug, clap::Args)]
struct Remove {
    /// Name of the account
    #[arg(value_name = "NAME", value_parser = name)]
    name: Name,
    #[command(flatten)]
    state: State,
}

/// Import accounts from a file of Apache's htdigest
///
/// They can log in only with MD5, as viewers, if the proxy's configuration says md5 = true. All must have one
/// realm, the realm of the accounts here.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:
  visperf account import-htdigest /etc/users --domain UT-ICL --realm monitor")]
struct Import {
    /// File with one NAME:REALM:DIGITS per line
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    granted: Granted,
    /// Realm of the accounts [default: the realm of the accounts here, else visperf]
    #[arg(long, value_name = "REALM")]
    realm: Option<String>,
    #[command(flatten)]
    state: State,
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Add(args) => add(args),
        Action::Remove(args) => remove(args),
        Action::List(args) => list::run(args),
        Action::ImportHtdigest(args) => import(args),
        Action::Pass(args) => pass::run(args),
    }
}

impl Granted {
    fn grant(&self) -> Result<Grant, Failure> {
        for (option, count) in [("--domain", self.domain.len()), ("--host", self.host.len())] {
            if count > NAMES_MAX {
                return Err(Failure::Usage(format!("{option}: an account lists at most {NAMES_MAX} names")));
            }
        }
        let hosts: BTreeSet<HostName> = self.host.iter().cloned().collect();
        let classes: BTreeSet<Class> = self.calls.iter().copied().collect();
        Ok(Grant {
            domains: if self.all_domains {
                Chosen::All
            } else {
                Chosen::These(self.domain.iter().cloned().collect())
            },
            hosts: if hosts.is_empty() { Chosen::All } else { Chosen::These(hosts) },
            classes: if classes.is_empty() { Class::USUAL.into() } else { classes },
        })
    }
}

fn add(args: &Add) -> Result<(), Failure> {
    let state = args.state.open()?;
    let mut drawn = [0; SECRET_LEN_BYTES];
    getrandom::fill(&mut drawn).map_err(|error| Failure::of("the system gives no random numbers", error))?;
    let secret = BASE32_NOPAD.encode(&drawn).to_ascii_lowercase();
    let (name, grant) = (args.name.clone(), args.granted.grant()?);
    let rights = if args.operator { Rights::Operator } else { Rights::Viewer };
    let realm = realm(&args.state, args.realm.as_deref())?;
    let proofs = Proofs::of(&name, &realm, &secret, args.legacy);
    let account = Account { name, rights, grant, proofs };
    account_file::change(&state, &realm, |all| all.add(account)).map_err(failure)?;
    let mut output = Output::stdout();
    if args.json {
        output.json(&json!({ "name": args.name.as_str(), "realm": realm, "secret": secret }))?;
        return output.flush();
    }
    note(&format!("account {} of realm {realm}; its secret, shown this once:", args.name));
    output.line(&secret)?;
    output.flush()
}

fn remove(args: &Remove) -> Result<(), Failure> {
    let state = args.state.open()?;
    let removed = account_file::change(&state, REALM_DEFAULT, |all| Ok(all.remove(&args.name)));
    if removed.map_err(failure)? {
        note(&format!("removed {}", args.name));
        return Ok(());
    }
    let list = args.state.with("visperf account list");
    Err(Failure::Failed(format!("there is no account {}; `{list}` shows those there are", args.name)))
}

fn import(args: &Import) -> Result<(), Failure> {
    let shown = args.file.display();
    let size =
        std::fs::metadata(&args.file).map_err(|error| Failure::of(&format!("cannot read {shown}"), error))?;
    if size.len() > htdigest::LEN_MAX_BYTES {
        let most = htdigest::LEN_MAX_BYTES;
        return Err(Failure::Failed(format!("{shown} is longer than {most} bytes, which no such file is")));
    }
    let text = std::fs::read_to_string(&args.file);
    let text = text.map_err(|error| Failure::of(&format!("cannot read {shown}"), error))?;
    let (grant, realm) = (args.granted.grant()?, realm(&args.state, args.realm.as_deref())?);
    let found =
        htdigest::read(&text, &realm).map_err(|error| Failure::Refused(format!("{shown}: {error}")))?;
    let count = found.len();
    let added = account_file::change(&args.state.open()?, &realm, |all| {
        found.into_iter().try_for_each(|(name, ha1)| {
            let (grant, proofs) = (grant.clone(), Proofs::of_md5(ha1));
            all.add(Account { name, rights: Rights::Viewer, grant, proofs })
        })
    });
    added.map_err(failure)?;
    note(&format!("took over {count} accounts of realm {realm}; they come in where [proxy] md5 = true"));
    Ok(())
}

/// The realm of the accounts here; an option cannot change it once there are accounts.
fn realm(state: &State, given: Option<&str>) -> Result<String, Failure> {
    let held = account_file::read(&state.open()?).map_err(failure)?;
    match (held, given) {
        (Some(held), Some(given)) if held.realm() != given => Err(Failure::Usage(format!(
            "--realm {given}: the accounts here are of realm {}, and all of a proxy have one",
            held.realm()
        ))),
        (Some(held), _) => Ok(held.realm().to_owned()),
        (None, given) => Ok(given.unwrap_or(REALM_DEFAULT).to_owned()),
    }
}

fn failure(error: account_file::Error) -> Failure {
    Failure::Failed(error.to_string())
}

fn name(text: &str) -> Result<Name, account::Error> {
    text.parse()
}

fn domain(text: &str) -> Result<DomainName, String> {
    DomainName::try_from(text).map_err(|error| error.to_string())
}

fn host(text: &str) -> Result<HostName, String> {
    HostName::try_from(text).map_err(|error| error.to_string())
}

fn class(text: &str) -> Result<Class, String> {
    let words: Vec<&str> = Class::ALL.iter().map(|class| class.word()).collect();
    let found = Class::ALL.into_iter().find(|class| class.word() == text);
    found.ok_or_else(|| format!("expected {}", words.join(", ")))
}
