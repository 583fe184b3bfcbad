//! Parses the syntax of git's configuration files into a flat list of entries.
//!
//! The grammar is the one of `git_parse_source` in git's `config.c`, with all its details: a section may share a line
//! with its first key; `[a.b]` names the same keys as `[a "b"]`, in lower case; a carriage return is dropped only
//! before a line feed. This module does not interpret the entries.

/// An entry `name = value` of a configuration file.
///
/// `name` is flat, as git keeps it: `section.key` or `section.sub.key`. Section and key are in lower case, and the
/// subsection is as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigEntry {
    pub(super) name: Vec<u8>,
    /// The value; `None` for a key without `=`. Git reads such a key as true for a boolean, and refuses it for other
    /// types.
    pub(super) value: Option<Vec<u8>>,
}

/// The section, the subsection and the key of a [`ConfigEntry`]. `None` means that there is no subsection; an empty
/// subsection is something else.
pub(super) type Parts<'a> = (&'a [u8], Option<&'a [u8]>, &'a [u8]);

impl ConfigEntry {
    /// Splits the flat name as git's `parse_config_key` does. `None` when the name has no section, which the parser
    /// never returns.
    pub(super) fn split_name(&self) -> Option<Parts<'_>> {
        let first = self.name.iter().position(|&b| b == b'.')?;
        let last = self.name.iter().rposition(|&b| b == b'.')?;
        let sub = self.name.get(first + 1..last);
        Some((self.name.get(..first)?, sub, self.name.get(last + 1..)?))
    }
}

/// The error for a file that does not parse. Git fails at such a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MalformedConfig;

/// Returns true for white space as git defines it (`sane_ctype`), without vertical tab and form feed.
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

const fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// Parses one file.
///
/// Refuses a file with a NUL byte, because git uses C strings, which end there.
pub(super) fn parse_config(text: &[u8]) -> Result<Vec<ConfigEntry>, MalformedConfig> {
    if text.contains(&0) {
        return Err(MalformedConfig);
    }
    let mut source = ConfigText::new(text)?;
    let mut entries = Vec::new();
    let mut section = Vec::new();
    while let Some(byte) = source.next() {
        match byte {
            b'#' | b';' => source.skip_line(),
            b'[' => section = source.read_section()?,
            byte if is_space(byte) => {}
            byte if byte.is_ascii_alphabetic() && !section.is_empty() => {
                entries.push(source.read_entry(&section, byte)?);
            }
            _ => return Err(MalformedConfig),
        }
    }
    Ok(entries)
}

/// The bytes of a file. Line ends are read as git reads them.
struct ConfigText<'a> {
    text: &'a [u8],
    offset: usize,
}

impl<'a> ConfigText<'a> {
    /// Skips a byte order mark. An incomplete mark is an error.
    fn new(text: &'a [u8]) -> Result<Self, MalformedConfig> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let start = if text.starts_with(MARK) {
            MARK.len()
        } else if text.first() == MARK.first() {
            return Err(MalformedConfig);
        } else {
            0
        };
        Ok(Self { text, offset: start })
    }

    /// Returns the next byte; `None` at the end. A CRLF is returned as LF.
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.offset)?;
        self.offset += 1;
        if byte == b'\r' && self.text.get(self.offset) == Some(&b'\n') {
            self.offset += 1;
            return Some(b'\n');
        }
        Some(byte)
    }

    /// Returns the next byte. The end of the file counts as an end of line.
    fn next_or_newline(&mut self) -> u8 {
        self.next().unwrap_or(b'\n')
    }

    fn skip_line(&mut self) {
        while self.next_or_newline() != b'\n' {}
    }

    /// Reads the text from after `[` to and including `]`. Returns it as `section.` or `section.sub.`.
    fn read_section(&mut self) -> Result<Vec<u8>, MalformedConfig> {
        let mut name = Vec::new();
        loop {
            match self.next().ok_or(MalformedConfig)? {
                b']' if name.is_empty() => return Err(MalformedConfig),
                b']' => break,
                byte if is_space(byte) => {
                    self.read_subsection(&mut name, byte)?;
                    break;
                }
                byte if is_key_byte(byte) || byte == b'.' => {
                    name.push(byte.to_ascii_lowercase());
                }
                _ => return Err(MalformedConfig),
            }
        }
        name.push(b'.');
        Ok(name)
    }

    /// Reads the quoted part of `[section "sub"]`. `space` is the byte before this part.
    fn read_subsection(&mut self, name: &mut Vec<u8>, space: u8) -> Result<(), MalformedConfig> {
        let mut byte = space;
        while is_space(byte) {
            if byte == b'\n' {
                return Err(MalformedConfig);
            }
            byte = self.next_or_newline();
        }
        if byte != b'"' {
            return Err(MalformedConfig);
        }
        name.push(b'.');
        loop {
            let mut byte = self.next_or_newline();
            if byte == b'"' {
                break;
            }
            if byte == b'\\' {
                byte = self.next_or_newline();
            }
            if byte == b'\n' {
                return Err(MalformedConfig);
            }
            name.push(byte);
        }
        if self.next() == Some(b']') { Ok(()) } else { Err(MalformedConfig) }
    }

    /// Reads a key that starts with `first`, and its value.
    fn read_entry(&mut self, section: &[u8], first: u8) -> Result<ConfigEntry, MalformedConfig> {
        let mut name = section.to_vec();
        name.push(first.to_ascii_lowercase());
        let mut byte = self.next_or_newline();
        while is_key_byte(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.next_or_newline();
        }
        while byte == b' ' || byte == b'\t' {
            byte = self.next_or_newline();
        }
        let value = match byte {
            b'\n' => None,
            b'=' => Some(self.read_value()?),
            _ => return Err(MalformedConfig),
        };
        Ok(ConfigEntry { name, value })
    }

    /// Reads the text after `=`, with quotes, escapes, comments and continued lines.
    fn read_value(&mut self) -> Result<Vec<u8>, MalformedConfig> {
        let mut value: Vec<u8> = Vec::new();
        // The length without the white space at the end, to which the value is cut.
        let mut trim: Option<usize> = None;
        let mut quoted = false;
        loop {
            let byte = self.next_or_newline();
            match byte {
                b'\n' if quoted => return Err(MalformedConfig),
                b'\n' => break,
                byte if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        trim.get_or_insert(value.len());
                        value.push(byte);
                    }
                    continue;
                }
                b';' | b'#' if !quoted => {
                    self.skip_line();
                    break;
                }
                _ => {}
            }
            trim = None;
            match byte {
                b'\\' => match self.next_or_newline() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(b'\x08'),
                    b'n' => value.push(b'\n'),
                    escaped @ (b'\\' | b'"') => value.push(escaped),
                    _ => return Err(MalformedConfig),
                },
                b'"' => quoted = !quoted,
                byte => value.push(byte),
            }
        }
        if let Some(len) = trim {
            value.truncate(len);
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::{MalformedConfig, parse_config};

    fn shown(text: &[u8]) -> Result<String, MalformedConfig> {
        let lines: Vec<String> = parse_config(text)?
            .iter()
            .map(|entry| {
                let name = String::from_utf8_lossy(&entry.name);
                match &entry.value {
                    Some(value) => format!("{name}={}", String::from_utf8_lossy(value)),
                    None => name.into_owned(),
                }
            })
            .collect();
        Ok(lines.join("|"))
    }

    #[test]
    fn well_formed_files() {
        let table: &[(&[u8], &str)] = &[
            (b"", ""),
            (b"\xef\xbb\xbf[a]\nb=c\n", "a.b=c"),
            (b"[remote \"origin\"] url=x", "remote.origin.url=x"),
            (b"[Remote \"Origin\"]\nURL = x", "remote.Origin.url=x"),
            (b"[remote.Origin]\nurl = x", "remote.origin.url=x"),
            (b"[a \t \"b\"]c", "a.b.c"),
            (b"[a \"\"]c=", "a..c="),
            (b"[a \"b\\\"\\\\\\c\"]d=1", "a.b\"\\c.d=1"),
            (b"[a]\r\nb = c\r\nd\r\n", "a.b=c|a.d"),
            (b"[a]b=c\rd\n", "a.b=c\rd"),
            (b"[a]b= \"x  y\" ; no\n", "a.b=x  y"),
            (b"[a]b=x  y  # no\n", "a.b=x  y"),
            (b"[a]b=x\"#\"y\n", "a.b=x#y"),
            (b"[a]b=x\\\n  y\n", "a.b=x  y"),
            (b"[a]b=x\\\r\ny", "a.b=xy"),
            (b"[a]b=\"x\\\ny\"\n", "a.b=xy"),
            (b"[a]b=\\t\\n\\\\\\\"\\b\n", "a.b=\t\n\\\"\x08"),
            (b"[a]b=c\\", "a.b=c"),
            (b"[a]b=\" c \" \n", "a.b= c "),
            (b"# x\n;y\n[a]b-1=c", "a.b-1=c"),
            (b"[a]\n[b]c=1\n[a]d=2", "b.c=1|a.d=2"),
            (b"[a]b\t \t=\t c", "a.b=c"),
            (b"[a] b = [c]", "a.b=[c]"),
        ];
        for (text, expected) in table {
            let got = shown(text);
            assert_eq!(got.as_deref(), Ok(*expected), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn malformed_files() {
        let table: &[&[u8]] = &[
            b"\xef\xbb[a]b=c",
            b"a=b",
            b"[a",
            b"[]b=c",
            b"[ \"x\"",
            b"[a \"b\" ]c=d",
            b"[a b]c=d",
            b"[a \"b]\nc=d",
            b"[a \"b\\\n\"]c=d",
            b"[a_b]c=d",
            b"[a]1=b",
            b"[a]b c",
            b"[a]b:c",
            b"[a]b_c=d",
            b"[a]b=\"c\n",
            b"[a]b=\"c",
            b"[a]b=\\x",
            b"[a]b=\\",
            b"[a]b=c\0d",
            b"[a]\n=b",
            b"\xff\xfe[\0a\0]\0",
        ];
        for text in table {
            let expected = if *text == b"[a]b=\\" { Ok("a.b=".to_owned()) } else { Err(MalformedConfig) };
            assert_eq!(shown(text), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    /// Tests that no input makes the parser panic or loop. It tries every prefix and every single-byte change of a file
    /// that uses the whole grammar.
    #[test]
    fn hostile_files() {
        let text: &[u8] = b"\xef\xbb\xbf# c\r\n[a.B \"c\\\"d\"] e = \"f\\n\" g ; h\n\tI\\\n[j]\nk=l\\\nm";
        for end in 0..text.len() {
            let _ = parse_config(&text[..end]);
            for byte in [0, b'\n', b'\r', b'"', b'\\', b'[', b']', b'=', b'.', 0xff] {
                let mut copy = text.to_vec();
                copy[end] = byte;
                let _ = parse_config(&copy);
            }
        }
        let _ = parse_config(&vec![b'['; 1 << 20]);
        let _ = parse_config(&b"[a]b=\\\n".repeat(1 << 16));
    }

    #[test]
    fn names_come_apart() {
        let entries = parse_config(b"[a]b=1\n[a \"\"]b=2\n[a \"x.y\"]b=3").unwrap_or_default();
        let parts: Vec<_> = entries.iter().filter_map(super::ConfigEntry::split_name).collect();
        let (a, b): (&[u8], &[u8]) = (b"a", b"b");
        assert_eq!(parts, [(a, None, b), (a, Some(&b""[..]), b), (a, Some(&b"x.y"[..]), b)]);
    }
}
