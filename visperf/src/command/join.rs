//! `visperf join`: makes this host a member of a domain, by a token or by a certificate that the root key
//! signed.
//!
//! Not here: dialling and verifying (`overlay::joining`), creating tokens (`command::token`).

use crate::command::daemons;
use crate::command::membership::{self, State, role_words};
use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::{Output, note, times};
use overlay::identity::{join, token, token_text};
use overlay::joining::{self, Error, Joined, Joiner, Tried};
use serde_json::json;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;
use wire::credential::{Role, Roles};
use wire::join::{Admitted, Token, TokenType};

/// Longest file with a token or certificate, in bytes; the longest valid line is shorter.
const LEN_MAX_BYTES: u64 = 128 << 10;

/// In characters: a longer argument is taken for a token, as few files have such a name.
const NAME_SHOWN_MAX: usize = 80;

/// Prefix of each kind of line.
const TOKEN: &str = "visperf1-";
const REPLACE: &str = "visperfreplace1-";
const CERTIFICATE: &str = "visperfcert1-";

/// Join a domain
///
/// The token is created by `visperf token create` on the host where the domain was created, whose daemon must
/// be running. The certificate that this host receives is stored in its state folder; its daemon joins the
/// domain at its next start. Joining again with the same token is harmless.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf join visperf1-...       the line that `visperf token create` printed
  visperf join ws1.cert           what `visperf domain certify` printed
  visperf join - < token          from standard input")]
pub(crate) struct Args {
    /// Token, or a file that contains a token or certificate; - for standard input
    #[arg(value_name = "TOKEN|FILE")]
    given: String,
    #[command(flatten)]
    state: State,
    /// Name of this host in the domain [default: its system host name]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Time to keep trying to reach the issuer, such as 30s or 10m
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = times::span)]
    wait: Duration,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Token or certificate from the command line.
#[derive(Debug)]
enum Credential {
    Token(Box<Token>),
    Certificate(Box<Admitted>),
}

/// Join the domain.
///
/// # Errors
/// If the argument is neither a token nor a certificate, the issuer is not reached or refuses, or a file
/// cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let credential = credential(&args.given)?;
    let folder = args.state.open()?;
    let joined = match credential {
        Credential::Certificate(admitted) => {
            daemons::run(async { joining::install(&folder, *admitted).await.map_err(failure) })?
        }
        Credential::Token(token) => {
            let host = membership::host(args.host.as_deref())?;
            let joiner = Joiner { state: folder, host, wanted: Roles::NONE, deadline: args.wait };
            let mut progress = |tried: &Tried| {
                note(&format!("{}: {}; trying on", tried.address, clean(&tried.said)));
            };
            let joining = async { joining::join(&token, &joiner, &mut progress).await };
            daemons::run(async { joining.await.map_err(|error| failure_of_token(error, &token)) })?
        }
    };
    show(args, &joined)
}

fn credential(text: &str) -> Result<Credential, Failure> {
    if begins(text, TOKEN) || begins(text, REPLACE) || begins(text, CERTIFICATE) {
        return read(text).map_err(|error| Failure::Usage(error.to_string()));
    }
    let content = match text {
        "-" => content_of(std::io::stdin().lock(), "standard input")?,
        path if Path::new(path).exists() => {
            let file = std::fs::File::open(path);
            content_of(file.map_err(|error| Failure::of(&format!("cannot open {path}"), error))?, path)?
        }
        // Neither: a mistyped token, or a wrong file name.
        text => {
            return read(text).map_err(|error| match clean(text) {
                text if text.len() <= NAME_SHOWN_MAX => {
                    Failure::Usage(format!("{error}; and there is no file {text}"))
                }
                _ => Failure::Usage(error.to_string()),
            });
        }
    };
    // The file may contain the whole command line.
    let line = content.trim();
    let line = line.strip_prefix("visperf join ").unwrap_or(line);
    read(line).map_err(|error| Failure::Usage(format!("{text}: {error}")))
}

fn read(text: &str) -> Result<Credential, token_text::Error> {
    match begins(text, CERTIFICATE) {
        true => join::parse(text).map(|admitted| Credential::Certificate(Box::new(admitted))),
        false => token::parse(text).map(|token| Credential::Token(Box::new(token))),
    }
}

fn begins(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

fn content_of(source: impl std::io::Read, name: &str) -> Result<String, Failure> {
    let mut content = String::new();
    let read = source.take(LEN_MAX_BYTES).read_to_string(&mut content);
    read.map_err(|error| Failure::of(&format!("cannot read {name}"), error))?;
    Ok(content)
}

fn failure_of_token(error: Error, token: &Token) -> Failure {
    let Error::Unreachable { .. } = &error else { return failure(error) };
    let type_hint = match token.token_type {
        TokenType::Replace => {
            ";\nan issuer of a version that does not know tokens of the type replace does not understand it"
        }
        TokenType::Join => "",
    };
    Failure::Unreachable(format!(
        "{error}\nsee that the daemon of the host where {} was created runs (`visperf sensor` there, with the --state \
         that the domain is in),\nand that its TCP port is open to this host; the token is good until {}{type_hint}",
        token.domain,
        membership::until(token.expires)
    ))
}

fn failure(error: Error) -> Failure {
    let text = clean(&error.to_string()).into_owned();
    if matches!(error, Error::NotAdmitted { .. }) {
        Failure::NotAdmitted(text)
    } else {
        Failure::Failed(text)
    }
}

fn show(args: &Args, joined: &Joined) -> Result<(), Failure> {
    let certificate = &joined.certificate;
    let mut output = Output::stdout();
    if args.json {
        output.json(&json!({
            "domain": certificate.domain.as_str(), "root": certificate.root.to_string(),
            "host": certificate.host.as_str(), "key": certificate.peer.to_string(),
            "roles": role_words(certificate.roles), "serial": certificate.serial.0,
            "expires": certificate.expires.secs_f64(), "known": joined.is_known,
        }))?;
        return output.flush();
    }
    let how = if joined.is_known { "is a member already" } else { "joined" };
    output.line(&format!(
        "{} {how}: domain {}, as {}",
        certificate.host, certificate.domain, certificate.roles
    ))?;
    output.flush()?;
    let by_root = joined.membership.chain.delegation.is_none();
    let renewed =
        if by_root { "only `visperf domain certify` renews it" } else { "the daemon renews it by itself" };
    note(&format!("the certificate holds until {}; {renewed}", membership::until(certificate.expires)));
    if args.state.is_running() {
        note("a daemon with this state folder runs: restart it to take part in the domain now");
    } else if certificate.roles.has(Role::Publisher) {
        membership::next(&[(args.state.start_sensor(), "start this host's daemon")]);
    }
    Ok(())
}
