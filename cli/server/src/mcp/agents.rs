//! Knows the clients that show `structuredContent` to their model in place of the text.

/// Words of the names by which such clients introduce themselves, in lower case. `Visual Studio Code` is asked for by
/// its first two words.
const AGENT_WORDS: [&str; 9] = ["claude", "codex", "copilot", "cursor", "gemini", "kimi", "opencode", "vscode", "zed"];
const AGENT_NAME: &str = "visual studio";

/// Returns true for a coding agent, by the name of its client. It is answered in text alone: an agent that reads
/// `structuredContent` reads nothing else, and would pay for JSON in place of lines.
pub fn reads_structure_for_text(client_name: &str) -> bool {
    let name = client_name.to_lowercase();
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    name.starts_with(AGENT_NAME) || words.any(|word| AGENT_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_known_by_a_word_of_their_name() {
        for name in [
            "claude-code/2.1.332",
            "claude-ai/0.1.0",
            "codex-mcp-client/0.171.0",
            "opencode/1.18.33",
            "gemini-cli-mcp-client/0.0.1",
            "Visual Studio Code - Insiders/1.99",
            "cursor-vscode/1.0.0",
            "Zed/0.1.0",
            "github-copilot-developer/1.0.0",
        ] {
            assert!(reads_structure_for_text(name), "{name}");
        }
        for name in ["", "t/0", "organized/1", "my-client/1.0", "mcp-inspector/0.16"] {
            assert!(!reads_structure_for_text(name), "{name}");
        }
    }
}
