//! Finds words that show that a text is about one person, one project or one session. Each check must accept harmless
//! cases. A colour and the name of a standard look like a ticket. The home of a user in a container looks like the home
//! of a person.

use std::path::Path;

use nudge_core::text::after_mark;

/// User names in images and CI runners, and common placeholders. A home with such a name does not belong to a person.
const ANYBODY: [&str; 27] = [
    "node",
    "app",
    "appuser",
    "user",
    "username",
    "youruser",
    "you",
    "me",
    "runner",
    "vscode",
    "circleci",
    "jovyan",
    "coder",
    "gitpod",
    "codespace",
    "nonroot",
    "git",
    "linuxbrew",
    "vagrant",
    "ubuntu",
    "ec2-user",
    "debian",
    "docker",
    "jenkins",
    "builder",
    "shared",
    "public",
];

/// Returns true when a text names a path in a person's home or in the home `own`.
pub fn names_a_home(text: &str, own: Option<&Path>) -> bool {
    let is_anybodys = |name: &str| {
        name.is_empty()
            || name.starts_with(['$', '<', '{', '*', '%', '.'])
            || ANYBODY.contains(&name.to_lowercase().as_str())
    };
    let own = own.and_then(Path::to_str).filter(|own| own.len() > 1);
    let own = own.filter(|own| !is_anybodys(after_mark(own, &['/', '\\'])));
    if text.contains("/root/") || own.is_some_and(|own| text.contains(own)) {
        return true;
    }
    let is_end = |c: char| c.is_whitespace() || "/\\\"'`,;:)]".contains(c);
    ["/home/", "/Users/", "C:\\Users\\", "C:/Users/"].iter().any(|start| {
        text.match_indices(start).any(|(offset, _)| {
            let name = &text[offset + start.len()..];
            let name = name.find(is_end).map_or(name, |end| &name[..end]);
            !is_anybodys(name.trim_end_matches('.'))
        })
    })
}

/// Returns the words of a text that may be a commit or a ticket. With each word it returns the text before the word.
fn iter_words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '#' | '_');
    let start = text.as_ptr() as usize;
    text.split(move |c| !is_part(c)).map(move |word| (&text[..word.as_ptr() as usize - start], word))
}

/// Returns true when a text contains a word of 7 to 64 hex digits that has both letters and digits.
pub fn names_a_commit(text: &str) -> bool {
    iter_words(text).any(|(_, word)| {
        (7..=64).contains(&word.len())
            && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && word.bytes().filter(u8::is_ascii_digit).count() >= 2
            && word.bytes().any(|byte| byte.is_ascii_lowercase())
    })
}

/// Keys in the form `KEY-123` that name a standard and not a project.
const STANDARDS: [&str; 62] = [
    "AES", "AIP", "AMD", "ANSI", "ARM", "BCP", "BIP", "BLAKE", "BS", "COVID", "CP", "CRC", "CVE", "CWE", "DDR", "DES",
    "DIN", "EAN", "ECMA", "ED", "EIP", "EN", "ERC", "ES", "EUC", "FIPS", "GB", "GHSA", "GPT", "HS", "HTTP", "IBM",
    "IEC", "IEEE", "ISO", "ITU", "JEP", "JSR", "KEP", "KIP", "KOI", "LATIN", "MD", "NIST", "PEP", "PKCS", "PS", "PSR",
    "RFC", "RS", "RSA", "RUSTSEC", "SHA", "SHA3", "SP", "STD", "TIS", "UCS", "UTC", "UTF", "WIN", "WINDOWS",
];

/// Returns true when a text names a ticket, such as `#1234` or `SHOP-1234`. Names of standards, such as `UTF-8` or
/// `FIPS-140`, and colours do not count.
pub fn names_a_ticket(text: &str) -> bool {
    let is_number = |text: &str| (2..=7).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    iter_words(text).any(|(before, word)| {
        if let Some(offset) = word.find('#') {
            let number = &word[offset + 1..];
            // A number directly after a name, as in `repository#12`, is never a colour.
            return is_number(number) && (offset > 0 || !is_colour(before, number));
        }
        let Some((key, number)) = word.split_once('-') else { return false };
        (2..=10).contains(&key.len())
            && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            && key.starts_with(|c: char| c.is_ascii_uppercase())
            && is_number(number)
            && !STANDARDS.contains(&key)
    })
}

/// Returns true when `#333` or `#112233` may be a colour. It cannot be one if a word before it is about tickets.
fn is_colour(before: &str, number: &str) -> bool {
    const TICKETS: [&str; 27] = [
        "issue",
        "issues",
        "pr",
        "prs",
        "pull",
        "request",
        "mr",
        "merge",
        "ticket",
        "tickets",
        "bug",
        "bugs",
        "task",
        "story",
        "gh",
        "see",
        "fix",
        "fixes",
        "fixed",
        "close",
        "closes",
        "closed",
        "resolves",
        "resolved",
        "refs",
        "ref",
        "discussion",
    ];
    if !matches!(number.len(), 3 | 6) || before.ends_with('(') {
        return false;
    }
    let sentence = after_mark(before, &['.', '!', '?', '\n']);
    let words = sentence.rsplit(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    !words.take(3).any(|word| TICKETS.contains(&word.to_lowercase().as_str()))
}

/// Phrases of a model that refuses, or that has found nothing.
const REFUSALS: [&str; 20] = [
    "as an ai",
    "as a language model",
    "as a large language model",
    "i cannot help",
    "i can't help",
    "i cannot assist",
    "i can't assist",
    "i cannot provide",
    "i can't provide",
    "i cannot comply",
    "i can't comply",
    "i won't be able",
    "i am unable",
    "i'm unable",
    "i'm sorry",
    "i am sorry",
    "i apologize",
    "no durable knowledge",
    "nothing to extract",
    "no knowledge was",
];
/// Words for the participants of a session, and verbs for their actions in it. With other verbs, a sentence about them
/// may describe software.
const ACTORS: [&str; 4] = ["the assistant", "the user", "the agent", "the transcript"];
const DEEDS: [&str; 34] = [
    "asked",
    "wanted",
    "requested",
    "said",
    "told",
    "replied",
    "answered",
    "refused",
    "declined",
    "apologized",
    "agreed",
    "suggested",
    "proposed",
    "tried",
    "fixed",
    "found",
    "noticed",
    "decided",
    "explained",
    "confirmed",
    "mentioned",
    "then",
    "ran",
    "wrote",
    "edited",
    "was",
    "could",
    "couldn't",
    "did",
    "shows",
    "mentions",
    "says",
    "wants me",
    "wants us",
];
/// Phrases that refer to the session itself.
const PLACES: [&str; 3] = ["in this session", "in this conversation", "during this session"];
const SPEAKERS: [&str; 7] = ["i", "we", "our", "my", "me", "us", "you"];

/// Returns true when a text is about the session from which it comes, or when it is the refusal of a model.
pub fn is_chatter(text: &str) -> bool {
    let text = text.to_lowercase().replace('\u{2019}', "'");
    text.split(['.', '!', '?', ';']).flat_map(|part| part.split("\n\n")).any(|sentence| {
        // Puts blanks around each word, so that a search finds only whole words.
        let is_part = |c: char| c.is_alphanumeric() || c == '\'' || c == '-';
        let words: Vec<_> = sentence.split(|c| !is_part(c)).filter(|word| !word.is_empty()).collect();
        let sentence = format!(" {} ", words.join(" "));
        let has = |phrase: &str| sentence.contains(&format!(" {phrase} "));
        REFUSALS.iter().any(|phrase| has(phrase))
            || ACTORS.iter().any(|actor| DEEDS.iter().any(|deed| has(&format!("{actor} {deed}"))))
            || PLACES.iter().any(|place| {
                sentence.starts_with(&format!(" {place} "))
                    || (has(place) && SPEAKERS.iter().any(|speaker| has(speaker)))
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "/srv/people/ann";

    fn stopped_by(text: &str) -> &'static str {
        match text {
            _ if names_a_home(text, Some(Path::new(HOME))) => "home",
            _ if names_a_commit(text) => "commit",
            _ if names_a_ticket(text) => "ticket",
            _ if is_chatter(text) => "chatter",
            _ => "",
        }
    }

    #[test]
    fn what_is_of_one_person_or_session_is_stopped() {
        for (text, expected) in [
            ("The keys lie in /home/petra/.ssh on that machine.", "home"),
            ("It reads /Users/jonas/Library first.", "home"),
            (r"Put it into C:\Users\mia\AppData.", "home"),
            ("Start it from /srv/people/ann/bin.", "home"),
            ("The script was in /home/k.lee/tools.", "home"),
            ("Nothing is read from /root/notes any more.", "home"),
            ("It came with 9f3ab21 and went with the next.", "commit"),
            ("Reverted 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567.", "commit"),
            ("The limit was raised for PAY-4512.", "ticket"),
            ("See #333 for the discussion.", "ticket"),
            ("This fixes issue #204.", "ticket"),
            ("The retry was added (#871).", "ticket"),
            ("It is tracked as #4711.", "ticket"),
            ("Also in shop#512, which is older.", "ticket"),
            ("OPS2-991 has the numbers.", "ticket"),
            ("Closed by pull request #123456.", "ticket"),
            ("I\u{2019}m sorry, that is not possible.", "chatter"),
            ("As an AI, I have no access to it.", "chatter"),
            ("I can't assist with that request.", "chatter"),
            ("The assistant tried three ports before one was free.", "chatter"),
            ("The user wanted a shorter answer.", "chatter"),
            ("In this session the cache was rebuilt twice.", "chatter"),
            ("What we changed in this session holds for all clients.", "chatter"),
            ("The transcript shows no decision.", "chatter"),
            ("There is no durable knowledge here.", "chatter"),
        ] {
            assert_eq!(stopped_by(text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_it_passes() {
        for text in [
            "Body text of #333 on white has enough contrast.",
            "Use color: #112233 for the frame and #777 for its shadow.",
            "Images of Node run as uid 1000 with the home /home/node.",
            "Mount the cache at /home/runner/.cache to keep it between jobs.",
            "Write /home/$USER/.config, never a name.",
            "On macOS /Users/Shared is writable for everybody.",
            "Modules must be validated by FIPS-140 before they may be used there.",
            "Sign with ES-256 where keys must be short.",
            "Files from old Windows machines are CP-1252, not Latin 1.",
            "A token signed by RS-256 can be verified without the secret.",
            "ISO-8859-15 has the euro sign at 0xA4.",
            "RSA-2048 is the least that clients still accept.",
            "Virtual threads came with JEP-444.",
            "Tokens by ERC-20 have no callback.",
            "Messages of the role of the assistant must alternate with those of the user.",
            "A prefill makes the assistant continue in the form that it began.",
            "SET without LOCAL changes the value for every later statement in this session.",
            "Variables exported in this session are not seen by services that run already.",
            "If the user wants to cancel, abort the request and free its slot.",
            "The transcript hash of a TLS handshake covers every message.",
            "A checksum serves as an aid, not as a proof.",
            "The effaced facade of a decade is no hash.",
            "Ports above 49152 are ephemeral by default.",
            "Wifi cannot help where the cable is the bottleneck.",
        ] {
            assert_eq!(stopped_by(text), "", "{text}");
        }
        assert!(!names_a_home("Images run in /home/node/app.", Some(Path::new("/home/node"))));
    }
}
