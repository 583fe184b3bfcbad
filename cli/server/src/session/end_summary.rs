//! Tells what becomes of the hints at the end of a session.

/// The numbers of hints that the end of a session loses and keeps.
pub struct EndSummary {
    /// The number of hints in the session at its end.
    pub hints: usize,
    /// The number of kept hints among them.
    pub kept: usize,
    /// The path of the database, or the reason why no hint is kept.
    pub place: std::result::Result<String, String>,
    /// The file with the hints of a session that could not write its database.
    pub left: Option<String>,
}

impl EndSummary {
    /// Returns the summary for users. Returns an empty text when there were no hints.
    pub fn to_text(&self) -> String {
        let count = |count: usize| if count == 1 { "1 hint".to_owned() } else { format!("{count} hints") };
        let is = |count: usize| if count == 1 { "is" } else { "are" };
        let Self { hints, kept, place, left } = self;
        match place {
            _ if *hints == 0 => String::new(),
            Ok(file) => {
                let gone = match hints.saturating_sub(*kept) {
                    0 => String::new(),
                    gone => format!("; {} ended with the session", count(gone)),
                };
                format!("{} {} kept for next time in {file}{gone}", count(*kept), is(*kept))
            }
            Err(why) => match left {
                Some(file) => {
                    format!("{} {} in {file}, which `nudge import` reads: {why}", count(*hints), is(*hints))
                }
                None => format!("{} {} gone: {why}", count(*hints), is(*hints)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keeper::OFF;
    use super::*;

    #[test]
    fn an_end_is_told_in_honest_words() {
        let told = |hints, kept, place| EndSummary { hints, kept, place, left: None }.to_text();
        assert_eq!(told(0, 0, Err(OFF.into())), "");
        assert_eq!(told(1, 0, Err(OFF.into())), format!("1 hint is gone: {OFF}"));
        assert_eq!(told(2, 2, Ok("/f".into())), "2 hints are kept for next time in /f");
        assert_eq!(told(3, 1, Ok("/f".into())), "1 hint is kept for next time in /f; 2 hints ended with the session");
        let left = EndSummary { hints: 2, kept: 0, place: Err("the disk is full".into()), left: Some("/l".into()) };
        assert_eq!(left.to_text(), "2 hints are in /l, which `nudge import` reads: the disk is full");
    }
}
