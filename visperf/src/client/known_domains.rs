//! Known domains: the root key of each domain queried through a proxy, trusted on first use, as `ssh` trusts
//! hosts.
//!
//! ```text
//! UT-ICL 12D3KooW…
//! ```
//! Rule: a root key that differs from the stored one never replaces it automatically.
//! Not here: whether a peer belongs to that root (`overlay::guest`).

use overlay::whole_file;
use std::io;
use std::path::{Path, PathBuf};
use wire::id::{DomainName, PeerKey};

/// Environment variable that names another file.
const VARIABLE: &str = "VISPERF_KNOWN_DOMAINS";

#[derive(Debug, Clone)]
pub(crate) struct File(PathBuf);

impl File {
    /// The user's file; `None` if the user has no home folder.
    pub(crate) fn usual() -> Option<File> {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = named(VARIABLE) {
            return Some(File(path));
        }
        let folder = named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")))?;
        Some(File(folder.join("visperf").join("known_domains")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The stored root key of `domain`.
    ///
    /// # Errors
    /// If the file cannot be read, or has a malformed line, which the text names by its number.
    pub(crate) fn root_of(&self, domain: &DomainName) -> Result<Option<PeerKey>, String> {
        let lines = self.lines()?;
        Ok(lines.into_iter().find(|(known, _)| known == domain).map(|(_, root)| root))
    }

    fn lines(&self) -> Result<Vec<(DomainName, PeerKey)>, String> {
        let path = self.0.display();
        let text = match std::fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("{path}: {error}")),
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(at, line)| {
                read(line).ok_or_else(|| {
                    format!(
                        "{path}, line {}: expected DOMAIN KEY, found something else; mend or remove it",
                        at + 1
                    )
                })
            })
            .collect()
    }

    /// Store `root` as the root key of `domain`.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(crate) fn remember(&self, domain: &DomainName, root: PeerKey) -> Result<(), String> {
        let mut lines = self.lines()?;
        lines.retain(|(known, _)| known != domain);
        lines.push((domain.clone(), root));
        let text: String = lines.iter().map(|(domain, root)| format!("{domain} {root}\n")).collect();
        let with_path = |error: io::Error| format!("{}: {error}", self.0.display());
        if let Some(folder) = self.0.parent() {
            std::fs::create_dir_all(folder).map_err(with_path)?;
        }
        whole_file::replace(&self.0, text.as_bytes()).map_err(with_path)
    }
}

fn read(line: &str) -> Option<(DomainName, PeerKey)> {
    let mut words = line.split_ascii_whitespace();
    let (domain, root) = (words.next()?, words.next()?);
    let known = (DomainName::try_from(domain).ok()?, root.parse().ok()?);
    words.next().is_none().then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_known_and_a_bad_line_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = File(folder.path().join("a").join("known"));
        let domain = |name: &str| DomainName::try_from(name).unwrap();
        let (one, other) = (PeerKey([1; 32]), PeerKey([2; 32]));
        assert_eq!(file.root_of(&domain("A")), Ok(None));
        file.remember(&domain("A"), one).unwrap();
        file.remember(&domain("B"), other).unwrap();
        file.remember(&domain("A"), other).unwrap();
        assert_eq!(
            (file.root_of(&domain("A")), file.root_of(&domain("B"))),
            (Ok(Some(other)), Ok(Some(other)))
        );
        std::fs::write(file.path(), format!("A {one}\nB\n")).unwrap();
        let text = file.root_of(&domain("A")).unwrap_err();
        assert!(text.contains("line 2") && text.contains("DOMAIN KEY"), "{text}");
    }
}
