//! Tests a disk that fails under the index of a brain or of a project's code. These indexes are caches, which a user
//! may delete. Every question still gets an answer. If a file has changed and the index could not follow, the answer
//! says so. No file of the user is written.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use super::{FAULTS, LONG, Lab, advice, kit::session::run, wait_for};

/// A question about a file that the test changes.
struct Asked {
    beneath: &'static str,
    args: &'static [&'static str],
    file: fn(&Lab) -> PathBuf,
    /// The texts of the file in order, each with a word that its answer contains.
    says: [(&'static str, &'static str); 3],
}

const ALL: &[Asked] = &[
    Asked {
        beneath: "/caches/brain",
        args: &["ask", "clients", "wait"],
        file: |lab| lab.desk.home.path().join("notes/a.md"),
        says: [
            ("# Retries\n\nClients wait a random time.\n", "a random time"),
            ("# Retries\n\nClients wait for half a minute.\n", "half a minute"),
            ("# Retries\n\nClients wait for the last of them.\n", "the last of them"),
        ],
    },
    #[cfg(feature = "code")]
    Asked {
        beneath: "/caches/code",
        args: &["code", "node", "process_payment"],
        file: |lab| lab.desk.checkout.join("pay.py"),
        says: [
            ("def process_payment(order):\n    return order\n", "order"),
            ("def process_payment(order, tax):\n    return order\n", "tax"),
            ("def process_payment(order, tax, discount):\n    return order\n", "discount"),
        ],
    },
];

#[test]
fn a_disk_that_fails_beneath_what_may_be_thrown_away_costs_no_answer() {
    for (Asked { beneath, args, file, says }, (fault, kind)) in
        ALL.iter().flat_map(|asked| FAULTS.iter().map(move |fault| (asked, fault)))
    {
        // Tests without and with an earlier cache, each time without a session and in a session.
        for (is_first, in_session) in [(true, false), (false, false), (true, true), (false, true)] {
            let what = format!("{beneath}, {kind}, the first: {is_first}, a session: {in_session}");
            let lab = Lab::new();
            let _serve = in_session.then(|| lab.serve(beneath));
            fs::create_dir_all(lab.desk.home.path().join("notes")).unwrap();
            // Repeats the question: a session answers before it has read the files, and its answer says so.
            let ask = || {
                wait_for("the files to be read", LONG, || {
                    let done = run(lab.command(beneath, args), LONG);
                    (!String::from_utf8_lossy(&done.stderr).contains("ask again in a moment")).then_some(done)
                })
            };
            let write = |index: usize| fs::write(file(&lab), says[index].0).unwrap();
            let answers = |done: &Output, index: usize| {
                let said = String::from_utf8_lossy(&done.stdout);
                assert!(done.status.success() && said.contains(says[index].1), "{what}: {done:?}");
            };
            write(0);
            if !is_first {
                answers(&ask(), 0);
                write(1);
            }
            let files = lab.files();
            let now = usize::from(!is_first);
            lab.arm(fault);
            for _ in 0..2 {
                let done = ask();
                let beside = String::from_utf8_lossy(&done.stderr);
                if let Some(stale) = beside.lines().find(|line| line.contains("stale")).filter(|_| !is_first) {
                    // The answer comes from the last good index. It says so and names what to do. A session may already
                    // have read the change.
                    let said = String::from_utf8_lossy(&done.stdout);
                    assert!(
                        done.status.success() && says[..2].iter().any(|(_, says)| said.contains(says)),
                        "{what}: {done:?}"
                    );
                    assert!(
                        ["look at its disk", advice(fault)].iter().any(|advice| stale.contains(advice)),
                        "{what}: {stale}"
                    );
                } else {
                    answers(&done, now);
                }
            }
            lab.disarm();
            assert_eq!(lab.files(), files, "{what}: nothing of the user's is written");
            answers(&ask(), now);
            // After the disk works again, no command takes the old answer for the present state: neither the first,
            // which writes the index, nor the second.
            write(2);
            for _ in 0..2 {
                answers(&ask(), 2);
            }
        }
    }
}
