//! Walks through a parsed line in the order in which the shell runs its commands.

use rable::{ListItem, ListOperator, Node, NodeKind};

use super::bounds::bound_line;
use super::simple::{self, ShellOptions, base_name, find_wrapper, parse_assignment, passes_on};
use super::unquote::{ShellWord, unquote_word};
use super::{Command, Folder, Input, Line, Told};

/// The most nested scripts, as in `bash -c "bash -c ..."`.
const MAX_SCRIPTS: usize = 3;

/// The characters that need the parser. A line without them is split at its spaces.
const SPECIAL: &str = "|&;()<>$`\"'\\#{}!\n";

/// The words with which a compound command begins.
const RESERVED: [&str; 9] = ["if", "while", "until", "for", "case", "select", "function", "coproc", "[["];

/// The state of the shell that one command leaves for the next.
#[derive(Clone, Default)]
struct ShellState {
    folder: Folder,
    exported: Vec<(String, String)>,
    options: ShellOptions,
    /// Is true when the line may have ended before this point.
    ended: bool,
}

/// A simple command before its words are interpreted.
#[derive(Default)]
struct RawCommand {
    assignments: Vec<(String, String)>,
    words: Vec<ShellWord>,
    input: Input,
}

/// The position of a command in its line.
#[derive(Clone, Copy)]
struct CommandPlace {
    told: Told,
    piped: bool,
    /// Is true when `set -e` applies and other commands follow: they run only if this command succeeds.
    before: bool,
}

#[derive(Default)]
pub(super) struct ShellWalk {
    commands: Vec<Command>,
    background: bool,
    state: ShellState,
    scripts: usize,
}

impl AsRef<str> for ShellWord {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl ShellWalk {
    pub fn into_line(self) -> Line {
        Line { commands: self.commands, background: self.background }
    }

    /// Walks through a line or a script.
    pub fn walk_line(&mut self, line: &str, told: Told) -> Option<()> {
        self.walk_text(line, CommandPlace { told, piped: false, before: false })
    }

    fn walk_text(&mut self, line: &str, place: CommandPlace) -> Option<()> {
        if !line.contains(|c: char| SPECIAL.contains(c)) {
            let words: Vec<_> = line.split_whitespace().collect();
            if !words.iter().any(|word| RESERVED.contains(word)) {
                let set = words.iter().map_while(|word| parse_assignment(word)).collect::<Vec<_>>();
                let words = words[set.len()..].iter();
                let words = words.map(|word| ShellWord { text: (*word).into(), dynamic: false }).collect();
                return self.walk_simple(RawCommand { assignments: set, words, input: Input::None }, place);
            }
        }
        let nodes = rable::parse(&bound_line(line)?, false).ok()?;
        self.background |= self.scripts == 0 && nodes.last().is_some_and(ends_in_background);
        for (index, node) in nodes.iter().enumerate() {
            let place = if index + 1 == nodes.len() {
                CommandPlace { told: self.after_others(nodes[..index].iter(), place.told), ..place }
            } else {
                self.before_another(node, place)
            };
            self.walk_node(node, place)?;
        }
        Some(())
    }

    /// Returns the position of a command that another command follows. The line's result says nothing about the first
    /// command, unless `set -e` is on.
    fn before_another(&self, node: &Node, place: CommandPlace) -> CommandPlace {
        let told = Told { success: place.told.success && self.state.options.errexit, ..Told::NOTHING };
        let told = if is_plain(node) || is_sequence(node) { told } else { Told::NOTHING };
        CommandPlace { told, before: true, ..place }
    }

    /// Returns how much the exit code says about the last command after `others`. With `set -e`, the failure of another
    /// command may have ended the line; the line's failure then says nothing about the last command.
    fn after_others<'n>(&self, mut others: impl Iterator<Item = &'n Node>, told: Told) -> Told {
        Told { failure: told.failure && (!self.state.options.errexit || others.all(cannot_fail)), ..told }
    }

    fn walk_node(&mut self, node: &Node, place: CommandPlace) -> Option<()> {
        match &node.kind {
            NodeKind::Command { assignments, words, redirects } => {
                let raw = RawCommand {
                    assignments: assignments
                        .iter()
                        .filter_map(|node| parse_assignment(&unquote_word(text_of(node)?).text))
                        .collect(),
                    words: words.iter().filter_map(|node| text_of(node).map(unquote_word)).collect(),
                    input: redirects.iter().rev().find_map(input_of).unwrap_or_default(),
                };
                self.walk_simple(raw, place)
            }
            NodeKind::List { items } => self.walk_list(items, place),
            NodeKind::Pipeline { commands, .. } => self.walk_pipeline(commands, place),
            NodeKind::Time { pipeline, .. } => self.walk_node(pipeline, place),
            NodeKind::Negation { pipeline } => self.walk_node(pipeline, CommandPlace { told: Told::NOTHING, ..place }),
            NodeKind::Subshell { body, .. } => self.walk_subshell(body, place),
            NodeKind::BraceGroup { body, .. } => self.walk_node(body, place),
            NodeKind::If { condition, then_body, else_body, .. } => {
                let bodies = [Some(condition), Some(then_body), else_body.as_ref()];
                self.walk_optional(bodies.into_iter().flatten().map(|body| &**body), place)
            }
            NodeKind::While { condition, body, .. } | NodeKind::Until { condition, body, .. } => {
                self.walk_optional([&**condition, &**body], place)
            }
            NodeKind::For { body, .. } | NodeKind::ForArith { body, .. } | NodeKind::Select { body, .. } => {
                self.walk_optional([&**body], place)
            }
            NodeKind::Case { patterns, .. } => {
                self.walk_optional(patterns.iter().filter_map(|pattern| pattern.body.as_ref()), place)
            }
            NodeKind::Coproc { command, .. } => self.walk_optional([&**command], place),
            _ => Some(()),
        }
    }

    /// Walks a command in a subshell. The subshell does not change the state for the commands after it.
    fn walk_subshell(&mut self, node: &Node, place: CommandPlace) -> Option<()> {
        let state = self.state.clone();
        let done = self.walk_node(node, place);
        self.state = state;
        done
    }

    /// Walks commands that the shell may run never, once or several times. If one of them changes the folder, the
    /// folder after them is unknown.
    fn walk_optional<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node>, place: CommandPlace) -> Option<()> {
        let folder = self.state.folder.clone();
        for node in nodes {
            self.walk_node(node, CommandPlace { told: Told::NOTHING, ..place })?;
        }
        if self.state.folder != folder {
            self.state.folder = Folder::Unknown;
        }
        Some(())
    }

    /// Walks a list of commands. Lists are left-deep trees: `a && b; c` is `((a && b); c)`.
    fn walk_list(&mut self, items: &[ListItem], place: CommandPlace) -> Option<()> {
        if let Some(first) = first_of(items).filter(|first| program_of(first) == Some("set")) {
            // The options of `set` decide how much the exit code says.
            self.walk_node(first, place)?;
        }
        let (mut items, mut of_left) = (items, place);
        let mut later = Vec::new();
        loop {
            let [left, rest @ ..] = items else { return None };
            let (operator, right) = (left.operator?, rest.first().map(|item| &item.command));
            let of_right;
            (of_left, of_right) = self.split_place(operator, &left.command, right, of_left);
            later.extend(right.map(|right| (operator, cannot_fail(&left.command), right, of_right)));
            match &left.command.kind {
                NodeKind::List { items: inner } if operator != ListOperator::Background => items = inner,
                _ if operator == ListOperator::Background => {
                    self.walk_subshell(&left.command, of_left)?;
                    break;
                }
                _ => {
                    self.walk_node(&left.command, of_left)?;
                    break;
                }
            }
        }
        for (operator, sure, right, place) in later.into_iter().rev() {
            if operator == ListOperator::Or {
                self.walk_or(right, sure, place)?;
            } else {
                self.walk_node(right, place)?;
            }
        }
        Some(())
    }

    /// Walks the right side of `||`. The right side runs in the folder that the left side has reached. If the left side
    /// has changed the folder, the folder of the right side is unknown. After `cd x || exit` the folder is `x`: only
    /// the failure of `cd` leads to `exit`.
    fn walk_or(&mut self, right: &Node, sure: bool, place: CommandPlace) -> Option<()> {
        let state = self.state.clone();
        if state.folder != Folder::Here {
            self.state.folder = Folder::Unknown;
        }
        let done = self.walk_node(right, place);
        let ended = self.state.ended && !sure;
        self.state = state;
        self.state.ended |= ended;
        done
    }

    /// Returns the positions of both sides of an operator.
    fn split_place(
        &self,
        operator: ListOperator,
        left: &Node,
        right: Option<&Node>,
        place: CommandPlace,
    ) -> (CommandPlace, CommandPlace) {
        let told = place.told;
        let with = |told| CommandPlace { told, ..place };
        let Some(right) = right else {
            let alone = if operator == ListOperator::Background { Told::NOTHING } else { told };
            return (with(alone), with(Told::NOTHING));
        };
        match operator {
            ListOperator::And => {
                let beside = |other| with(Told { failure: told.failure && cannot_fail(other), ..told });
                (beside(right), beside(left))
            }
            // If the line failed, both sides failed. If the line succeeded, one side may have failed.
            ListOperator::Or => {
                (with(Told { success: false, code: false, ..told }), with(Told { success: false, ..told }))
            }
            ListOperator::Semi => {
                let last = if place.before && !is_plain(right) { Told::NOTHING } else { told };
                (self.before_another(left, place), with(self.after_others([left].into_iter(), last)))
            }
            ListOperator::Background => (with(Told::NOTHING), place),
        }
    }

    fn walk_pipeline(&mut self, commands: &[Node], place: CommandPlace) -> Option<()> {
        let any = self.state.options.pipefail;
        for (index, command) in commands.iter().enumerate() {
            let rest = &commands[index + 1..];
            let told = match (rest.is_empty(), any) {
                (false, false) => Told::NOTHING,
                (_, true) => {
                    let others = commands[..index].iter().chain(rest);
                    let alone = others.clone().count() == rest.len() && rest.iter().all(hands_on);
                    Told { failure: place.told.failure && alone, ..place.told }
                }
                // The exit code of a pipeline is the code of its last command.
                (true, false) => place.told,
            };
            self.walk_subshell(command, CommandPlace { told, piped: place.piped || index > 0, ..place })?;
        }
        Some(())
    }

    fn walk_simple(&mut self, raw: RawCommand, place: CommandPlace) -> Option<()> {
        let RawCommand { assignments: mut set, words, input } = raw;
        let mut rest = &words[..];
        let (mut elevated, mut limited, mut ends) = (false, false, false);
        while let Some((name, taken)) = find_wrapper(rest) {
            elevated |= matches!(name, "sudo" | "doas");
            limited |= matches!(name, "timeout" | "gtimeout");
            ends |= name == "exec";
            rest = &rest[taken..];
            if matches!(name, "env" | "sudo" | "doas") {
                while let Some(more) = rest.first().and_then(|word| parse_assignment(&word.text)) {
                    set.push(more);
                    rest = &rest[1..];
                }
            }
        }
        let Some(first) = rest.first() else { return Some(()) };
        let told = if self.state.ended { Told::NOTHING } else { place.told };
        let place = CommandPlace { told, ..place };
        self.state.ended |= ends || matches!(&*first.text, "exit" | "return");
        if self.note_changes(base_name(&first.text), &rest[1..]) {
            return Some(());
        }
        if let Some(script) = simple::find_script(rest).filter(|_| self.scripts < MAX_SCRIPTS)
            && let Some(text) = rest.get(script.word_index).filter(|text| !text.dynamic)
        {
            let (from, state) = (self.commands.len(), self.state.clone());
            self.state.options = script.options;
            self.state.exported.extend(set);
            self.scripts += 1;
            let done = self.walk_text(&text.text, place);
            self.scripts -= 1;
            self.state = state;
            for command in &mut self.commands[from..] {
                command.elevated |= elevated;
                command.limited |= limited;
            }
            return done;
        }
        let words: Vec<_> = rest.iter().map(|word| word.text.clone()).collect();
        let (program, program_words) = simple::find_program(&words);
        let mut assignments = self.state.exported.clone();
        assignments.extend(set);
        in_order(&mut assignments);
        let folder = self.state.folder.clone();
        let CommandPlace { told, piped, .. } = place;
        self.commands.push(Command {
            program,
            words,
            assignments,
            folder,
            input,
            elevated,
            limited,
            piped,
            told,
            program_words,
        });
        Some(())
    }

    /// Notes the changes that a command such as `cd` makes for later commands. Returns false for a command that makes
    /// no such change.
    fn note_changes(&mut self, program: &str, arguments: &[ShellWord]) -> bool {
        match program {
            "cd" | "pushd" => {
                let mut arguments = arguments.iter().filter(|word| !["-P", "-L", "--"].contains(&&*word.text));
                self.state.folder = match (arguments.next(), arguments.next()) {
                    (Some(to), None) if !to.dynamic => change_folder(&self.state.folder, &to.text),
                    _ => Folder::Unknown,
                };
            }
            "popd" => self.state.folder = Folder::Unknown,
            "export" => self.state.exported.extend(arguments.iter().filter_map(|word| parse_assignment(&word.text))),
            "set" => {
                self.state.options.read(arguments);
            }
            _ => return false,
        }
        true
    }
}

/// Sorts the assignments by name; the last assignment of a name wins.
fn in_order(assignments: &mut Vec<(String, String)>) {
    assignments.reverse();
    assignments.sort_by(|a, b| a.0.cmp(&b.0));
    assignments.dedup_by(|a, b| a.0 == b.0);
}

/// Returns the folder after `cd`, given the folder before it and the target.
fn change_folder(from: &Folder, to: &str) -> Folder {
    let drive = to.as_bytes().get(1) == Some(&b':');
    match from {
        _ if to.is_empty() || to == "-" || to.starts_with('~') || to.contains(['*', '?', '[']) => Folder::Unknown,
        _ if to.starts_with(['/', '\\']) || drive => Folder::At(to.into()),
        Folder::Here => Folder::At(to.into()),
        Folder::At(from) => Folder::At(format!("{}/{to}", from.trim_end_matches('/'))),
        Folder::Unknown => Folder::Unknown,
    }
}

fn text_of(node: &Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Word { value, .. } => Some(value),
        _ => None,
    }
}

/// Returns the input that a redirection gives to its command; `None` for other redirections.
fn input_of(redirect: &Node) -> Option<Input> {
    match &redirect.kind {
        NodeKind::Redirect { op, target, fd: -1 | 0, .. } if matches!(&**op, "<" | "<<<" | "<>") => {
            let from = unquote_word(text_of(target)?).text;
            Some(if from == "/dev/null" { Input::None } else { Input::From(from) })
        }
        NodeKind::HereDoc { .. } => Some(Input::Document),
        _ => None,
    }
}

/// Returns true for a command whose failure ends the line under `set -e`.
fn is_plain(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Command { .. } | NodeKind::Pipeline { .. } | NodeKind::Time { .. })
}

/// Returns true for a list of the form `a; b`.
fn is_sequence(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::List { items } if items.first().is_some_and(|item| item.operator == Some(ListOperator::Semi)))
}

/// Returns true for commands such as `cd` and `set`, which only change the state for later commands.
fn cannot_fail(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Command { .. } => program_of(node).is_none_or(|program| {
            ["cd", "pushd", "popd", "export", "set", "shopt", "unset", "true", ":"].contains(&program)
        }),
        NodeKind::List { items } => items.iter().all(|item| {
            matches!(item.operator, None | Some(ListOperator::And | ListOperator::Semi)) && cannot_fail(&item.command)
        }),
        _ => false,
    }
}

fn hands_on(node: &Node) -> bool {
    program_of(node).is_some_and(|program| passes_on(base_name(program)))
}

/// Returns the first word of a simple command.
fn program_of(node: &Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Command { words, .. } => words.first().and_then(text_of),
        _ => None,
    }
}

/// Returns the first command of a list, unless it runs in the background.
fn first_of(items: &[ListItem]) -> Option<&Node> {
    let mut first = items.first()?;
    while first.operator != Some(ListOperator::Background)
        && let NodeKind::List { items } = &first.command.kind
    {
        first = items.first()?;
    }
    Some(&first.command)
}

fn ends_in_background(node: &Node) -> bool {
    match &node.kind {
        NodeKind::List { items } => match items.last() {
            Some(ListItem { operator: Some(ListOperator::Background), .. }) => true,
            Some(ListItem { command, .. }) => ends_in_background(command),
            None => false,
        },
        _ => false,
    }
}
