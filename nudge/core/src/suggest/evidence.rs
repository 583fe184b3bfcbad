//! Counts, for each fact and client session, how often the fact was told, followed and seen to fail. The counts name
//! facts, sessions and places only by digests, so they can be kept without any name or text.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::told::SessionPlace;
use crate::clock::Millis;

/// The most facts of all sessions whose counts wait to be taken. Further facts are not counted until then.
const MAX_WAITING: usize = 4096;

/// The first 8 bytes of the SHA-256 of a name. It is the same on every machine and in every version.
pub type NameDigest = i64;

/// Returns the digest of a fact: of the name of its source and its id there.
pub fn digest_fact(source: &str, id: &str) -> NameDigest {
    digest_name("fact", &[source, id])
}

/// Returns the digest of a place: of the repository if it is known, otherwise of the folder.
fn digest_place(place: &SessionPlace) -> NameDigest {
    match place {
        SessionPlace { repo: Some(repo), .. } => digest_name("repo", &[repo]),
        SessionPlace { cwd: Some(cwd), .. } => digest_name("cwd", &[cwd]),
        SessionPlace { .. } => digest_name("nowhere", &[]),
    }
}

fn digest_name(kind: &str, parts: &[&str]) -> NameDigest {
    let mut hasher = Sha256::new();
    for part in std::iter::once(&kind).chain(parts) {
        hasher.update(part.as_bytes());
        // Separates the parts. No name has this byte.
        hasher.update([0]);
    }
    let first = hasher.finalize().first_chunk().copied().expect("a SHA-256 has more than 8 bytes");
    NameDigest::from_be_bytes(first)
}

/// The counts of a fact in a client session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FactCounts {
    /// The number of times that the session was told the fact.
    pub told: u32,
    /// The number of commands that worked after the session was told to run them.
    pub followed: u32,
    /// The number of commands that failed after the session was told to run them.
    pub failed: u32,
    /// The number of events of the session that spoke of the fact.
    pub spoken_of: u32,
}

impl FactCounts {
    /// Adds other counts to these.
    fn add_counts(&mut self, other: Self) {
        self.told = self.told.saturating_add(other.told);
        self.followed = self.followed.saturating_add(other.followed);
        self.failed = self.failed.saturating_add(other.failed);
        self.spoken_of = self.spoken_of.saturating_add(other.spoken_of);
    }
}

/// The counts of a client session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionEvidence {
    /// The repository or the folder of the session.
    pub place: NameDigest,
    /// The time of the last count.
    pub last: Millis,
    /// The counts of each fact.
    pub facts: BTreeMap<NameDigest, FactCounts>,
}

/// The counts of several client sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactEvidence {
    /// The counts of each client session, by the digest of its name.
    pub sessions: BTreeMap<NameDigest, SessionEvidence>,
}

impl FactEvidence {
    /// Returns true when nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Returns the counts of a client session that is at this place now. Returns `None` when too many facts wait.
    pub(super) fn open_session(
        &mut self,
        name: &str,
        place: &SessionPlace,
        now: Millis,
    ) -> Option<&mut SessionEvidence> {
        if self.is_full() {
            return None;
        }
        let session = self.sessions.entry(digest_name("session", &[name])).or_default();
        (session.place, session.last) = (digest_place(place), now);
        Some(session)
    }

    fn is_full(&self) -> bool {
        self.sessions.values().map(|session| session.facts.len()).sum::<usize>() >= MAX_WAITING
    }

    /// Adds counts, for example of an earlier time that could not be stored. Leaves out sessions without room.
    pub fn add_evidence(&mut self, other: Self) {
        for (name, added) in other.sessions {
            if self.is_full() {
                return;
            }
            let session = self.sessions.entry(name).or_default();
            if added.last >= session.last {
                (session.place, session.last) = (added.place, added.last);
            }
            added.facts.into_iter().for_each(|(fact, counts)| session.count_fact(fact, counts));
        }
    }
}

impl SessionEvidence {
    /// Adds counts of a fact.
    pub fn count_fact(&mut self, fact: NameDigest, counts: FactCounts) {
        self.facts.entry(fact).or_default().add_counts(counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_repo(repo: &str) -> SessionPlace {
        SessionPlace { repo: Some(repo.into()), cwd: Some("/elsewhere".into()), branch: None }
    }

    /// Kept counts would be worthless if a later version had other digests.
    #[test]
    fn digests_never_change() {
        assert_eq!(digest_fact("hints", "api\nbuild\n"), -3_136_432_297_929_643_251);
        assert_ne!(digest_fact("hints", "a"), digest_fact("records", "a"));
        assert_ne!(digest_place(&at_repo("a")), digest_place(&SessionPlace::default()));
    }

    #[test]
    fn counts_add_up_and_the_last_place_stands() {
        let (told, followed) =
            (FactCounts { told: 1, ..FactCounts::default() }, FactCounts { followed: 1, ..FactCounts::default() });
        let (mut evidence, mut later) = (FactEvidence::default(), FactEvidence::default());
        evidence.open_session("s", &at_repo("a"), 5).unwrap().count_fact(1, told);
        later.open_session("s", &at_repo("b"), 7).unwrap().count_fact(1, followed);
        later.open_session("t", &at_repo("b"), 7).unwrap().count_fact(1, told);
        let mut turned = later.clone();
        turned.add_evidence(evidence.clone());
        evidence.add_evidence(later);
        assert_eq!(evidence, turned);
        let first = evidence.sessions.values().find(|session| session.facts[&1].followed == 1).unwrap();
        assert_eq!((first.place, first.last, first.facts[&1].told), (digest_place(&at_repo("b")), 7, 1));
        assert_eq!(evidence.sessions.len(), 2);
    }

    #[test]
    fn evidence_that_nobody_takes_stays_small() {
        let (mut evidence, place) = (FactEvidence::default(), SessionPlace::default());
        for fact in 0..10_000 {
            if let Some(session) = evidence.open_session("s", &place, 0) {
                session.count_fact(fact, FactCounts { told: 1, ..FactCounts::default() });
            }
        }
        assert_eq!(evidence.sessions.values().map(|session| session.facts.len()).sum::<usize>(), MAX_WAITING);
    }
}
