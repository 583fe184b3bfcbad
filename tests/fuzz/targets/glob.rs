//! Matches the pattern on the first line with a folder or a branch on the second line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_core::place::glob::{Glob, GlobKind, GlobSubject};
use nudge_core::steps::StepBudget;

fuzz_target!(|text: &str| {
    let (pattern, subject) = text.split_once('\n').unwrap_or((text, "/work/api"));
    for kind in [GlobKind::Cwd, GlobKind::Branch] {
        let Ok(glob) = Glob::new(pattern, kind) else { continue };
        // The stored text must be a valid pattern with the same meaning.
        let again = Glob::new(glob.as_str(), kind).expect("its own text is a pattern");
        for subject in [
            GlobSubject::from_cwd(subject, false),
            GlobSubject::from_cwd(subject, true),
            Some(GlobSubject::from_branch(subject)),
        ] {
            let Some(subject) = subject else { continue };
            let found = glob.matches(&subject, &mut StepBudget::of_a_call());
            if let (Ok(found), Ok(same)) = (found, again.matches(&subject, &mut StepBudget::of_a_call())) {
                assert_eq!(found, same, "{pattern:?} {:?}", subject.as_str());
            }
            let _ = glob.matches_above(&subject, &mut StepBudget::of_a_call());
        }
    }
});
