//! Makes the pull request for a branch with the command `gh`, or else with GitHub's API. If neither works, the branch
//! waits for a later review.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge_capture::gate::RejectedProposal;
use nudge_capture::view;
use nudge_core::clock::rfc3339;
use nudge_core::error::{Error, Result};
use nudge_core::source::StopFlag;
use nudge_os::process::ChildProgram;
#[cfg(feature = "llm")]
use serde_json::json;

use super::job::{CaptureJob, UnitDraft};
use super::repo::BrainRepo;
#[cfg(feature = "llm")]
use crate::llm::web;
use crate::llm::{RequestFault, program};

/// The data from which a pull request is made.
pub struct PullRequest<'a> {
    pub repo: &'a BrainRepo,
    pub head: &'a str,
    pub base: &'a str,
    pub title: String,
    pub body: String,
}

const LIMIT: Duration = Duration::from_mins(1);

/// Returns the title of a capture's commit and pull request: `Knowledge from session 2026-11-22 13:43`.
pub fn format_title(job: &CaptureJob) -> String {
    let minute: String = rfc3339::format_time(job.created).chars().take("2026-11-22T13:43".len()).collect();
    format!("Knowledge from session {}", minute.replace('T', " "))
}

/// Formats the text that the reviewer reads.
pub fn render_body(job: &CaptureJob) -> String {
    let mut out = String::from(
        "What a session was worth keeping, as a model proposes it. Nothing of it is in the brain before you merge.\n",
    );
    for UnitDraft { title, kind, domain, path, updates, .. } in &job.units {
        let what = if updates.is_some() { "adds to" } else { "new" };
        // Writing to a string never fails.
        let _ = write!(out, "\n- **{title}** ({kind}, {domain}; {what} `{path}`)");
    }
    let proposed = render_proposed_changes(job);
    if !proposed.is_empty() {
        let _ = write!(out, "\n\n{}", proposed.trim_end());
    }
    let others = job.rejected.iter().filter(|proposal| proposal.of.is_none()).count();
    let _ = write!(out, "\n\n{others} other proposals were refused; `nudge brain jobs` says by which gate.\n");
    view::withhold_secrets(&out, &mut 0)
}

/// Formats the texts that may extend existing units. The reviewer copies the new parts by hand. The files on the branch
/// contain none of these texts, because no measure can decide safely that two units say the same.
pub fn render_proposed_changes(job: &CaptureJob) -> String {
    let mut out = String::new();
    for RejectedProposal { title, of: unit, text, .. } in &job.rejected {
        let (Some(unit), Some(text)) = (unit, text) else { continue };
        if out.is_empty() {
            out += "Proposed as changes of units that are there. Merging changes none of them:\n";
        }
        // The fence keeps mentions and links in the text from working. The fence is longer than any fence in the text.
        let longest = text.split(|c| c != '~').map(str::len).fold(2, usize::max);
        let fence = "~".repeat(longest + 1);
        let _ = write!(out, "\n**{title}**, like `{unit}`:\n\n{fence}\n{text}\n{fence}\n");
    }
    view::withhold_secrets(&out, &mut 0)
}

impl PullRequest<'_> {
    /// Makes the pull request, or finds the existing one. Returns the address of the pull request.
    ///
    /// # Errors
    /// `E_SECRET_REJECTED` for a text that looks like a credential; else `E_UNAVAILABLE` with the reason.
    pub fn create(&self, gh: Option<PathBuf>) -> Result<String> {
        view::refuse_secrets("The pull request", &format!("{}\n{}", self.title, self.body))?;
        let by_command = gh.map(|gh| self.by_command(&gh));
        let (may_pass, text) = match by_command {
            Some(Ok(url)) => return Ok(url),
            said => match (self.by_api(), said.and_then(std::result::Result::err)) {
                (Ok(url), _) => return Ok(url),
                (Err(api), Some(gh)) => (api.may_pass || gh.may_pass, format!("{}; {}", gh.text, api.text)),
                (Err(api), None) => (api.may_pass, api.text),
            },
        };
        let text = format!("Nobody could make a pull request: {text}.");
        Err(if may_pass { Error::unavailable(text) } else { Error::invalid(text) })
    }

    fn by_command(&self, gh: &Path) -> std::result::Result<String, RequestFault> {
        let run = |words: &[&str], stdin: &str| {
            let mut program = ChildProgram::new(gh);
            self.repo.lend_to(&mut program);
            program.args(words).env("GH_PROMPT_DISABLED", "1").env("NO_COLOR", "1");
            program::run_program(&mut program, "gh", stdin, LIMIT, &StopFlag::default())
        };
        run(&["auth", "status"], "").map_err(|_| RequestFault::new_lasting("gh is not logged in"))?;
        let (head, base) = (self.head, self.base);
        let made = run(
            &["pr", "create", "--head", head, "--base", base, "--title", &self.title, "--body-file", "-"],
            &self.body,
        );
        let address =
            |said: &str| said.split_whitespace().rev().find(|word| word.starts_with("http")).map(str::to_owned);
        match made {
            Ok(said) => address(&said).ok_or_else(|| RequestFault::new_lasting("gh names no pull request")),
            // An earlier try that was interrupted may have made the pull request already.
            Err(fault) => match run(&["pr", "view", head, "--json", "url", "--jq", ".url"], "") {
                Ok(said) => address(&said).ok_or(fault),
                Err(_) => Err(fault),
            },
        }
    }

    #[cfg(not(feature = "llm"))]
    #[allow(clippy::unused_self)]
    fn by_api(&self) -> std::result::Result<String, RequestFault> {
        Err(RequestFault::new_lasting("`gh auth login` lets nudge make it"))
    }

    #[cfg(feature = "llm")]
    fn by_api(&self) -> std::result::Result<String, RequestFault> {
        let remote = self.repo.remote().ok_or_else(|| RequestFault::new_lasting("there is no remote"))?;
        let (host, owner, name) =
            parse_remote(&remote).ok_or_else(|| RequestFault::new_lasting("the remote is no project on GitHub"))?;
        let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let given = var("GITHUB_API_URL");
        if given.is_none() && host != "github.com" {
            return Err(RequestFault::new_lasting(
                "the remote is not on GitHub; set GITHUB_API_URL if it is one of your own",
            ));
        }
        let token = var("GH_TOKEN").or_else(|| var("GITHUB_TOKEN")).or_else(|| self.repo.find_credential(&host));
        let token = token
            .ok_or_else(|| RequestFault::new_lasting("there is no token for GitHub; `gh auth login` makes one"))?;
        let url = given.unwrap_or_else(|| "https://api.github.com".to_owned());
        let request = json!({"title": self.title, "head": self.head, "base": self.base, "body": self.body});
        GithubProject { url: url.trim_end_matches('/'), token: &token, owner: &owner, name: &name }
            .create_pull_request(&request, self.head)
    }
}

/// A project on GitHub that is reached through the API.
#[cfg(feature = "llm")]
pub struct GithubProject<'a> {
    pub url: &'a str,
    pub token: &'a str,
    pub owner: &'a str,
    pub name: &'a str,
}

#[cfg(feature = "llm")]
impl GithubProject<'_> {
    /// Makes a pull request, or finds the existing pull request of the branch.
    pub fn create_pull_request(
        &self,
        request: &serde_json::Value,
        head: &str,
    ) -> std::result::Result<String, RequestFault> {
        let GithubProject { url, token, owner, name } = self;
        let pulls = format!("{url}/repos/{owner}/{name}/pulls");
        let headers = [
            ("authorization", format!("Bearer {token}")),
            ("accept", "application/vnd.github+json".to_owned()),
            ("x-github-api-version", "2022-11-28".to_owned()),
        ];
        let made = web::send_request(&pulls, &headers, Some(request), LIMIT)?;
        let answer = match made.status {
            201 => made.body,
            422 => {
                let found =
                    web::send_request(&format!("{pulls}?state=all&head={owner}:{head}"), &headers, None, LIMIT)?;
                found.body[0].clone()
            }
            status => return Err(web::fault_from_status("GitHub", status)),
        };
        let url = answer["html_url"].as_str().map(str::to_owned);
        url.ok_or_else(|| RequestFault::new_lasting("GitHub takes no pull request for this branch"))
    }
}

#[cfg(any(feature = "llm", test))]
/// Splits the address of a remote into the host, the owner and the name of the project.
fn parse_remote(remote: &str) -> Option<(String, String, String)> {
    let (host, path) = match remote.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?,
        None => remote.split_once(':')?,
    };
    let host = host.rsplit('@').next()?.split(':').next()?.to_ascii_lowercase();
    let path = path.trim_matches('/');
    let (owner, name) = path.strip_suffix(".git").unwrap_or(path).split_once('/')?;
    let is_plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    (is_plain(&host) && is_plain(owner) && is_plain(name)).then(|| (host, owner.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_are_projects() {
        for remote in [
            "https://github.com/o/r.git",
            "https://github.com/o/r",
            "https://user:pw@github.com/o/r.git/",
            "git@github.com:o/r.git",
            "ssh://git@github.com:22/o/r.git",
        ] {
            assert_eq!(parse_remote(remote), Some(("github.com".into(), "o".into(), "r".into())), "{remote}");
        }
        for remote in [
            "",
            "/srv/brain.git",
            "https://github.com/o",
            "https://github.com/o/r/x",
            "https://github.com/o/r?x",
            "C:\\x",
        ] {
            assert_eq!(parse_remote(remote), None, "{remote}");
        }
    }
}
