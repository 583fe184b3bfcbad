//! Tables that fit the terminal, with one line for each row. Heads are never cut. Wide cells are cut so that as little
//! as possible is lost. If the table is still too wide, whole columns are left out. In a pipe, all columns stay, and
//! only cells of more than 1,000 characters are cut.

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Row, Table, Width};
use unicode_width::UnicodeWidthStr as _;

use super::{FAINT, STRONG, with_style};

/// The number of spaces between two columns.
const GAP: usize = 2;
/// The most characters of a cell in a pipe; with `--json` there is no limit.
const MOST_CHARS: usize = 1000;

/// A column of a table.
#[derive(Clone, Copy)]
pub struct TableColumn<'a> {
    /// The head of the column.
    pub head: &'a str,
    /// The least width of the column after a cut, in terminal columns.
    pub least: usize,
    /// The order in which columns are left out: the highest number goes first, and 0 never goes.
    pub goes: u8,
}

/// Makes a column that is never cut.
pub const fn whole_column(head: &str, goes: u8) -> TableColumn<'_> {
    TableColumn { head, least: usize::MAX, goes }
}

/// Makes a column that may be cut.
pub const fn cut_column(head: &str, least: usize, goes: u8) -> TableColumn<'_> {
    TableColumn { head, least, goes }
}

/// The cells of a row. The flag is true for a row in faint colour.
pub type Cells = (Vec<String>, bool);

/// Returns the width of the terminal on stdout. Returns `None` for a pipe or a file.
pub fn terminal_width() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(width)).filter(|width| *width > 0)
}

/// Renders a table that fits the width of stdout.
pub fn render_fitting(columns: &[TableColumn<'_>], rows: Vec<Cells>) -> String {
    render_within(columns, rows, terminal_width())
}

/// Renders a table with at most this width.
fn render_within(columns: &[TableColumn<'_>], rows: Vec<Cells>, width: Option<usize>) -> String {
    let shown = choose_columns(columns, &rows, width);
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(shown.iter().map(|(index, _)| columns[*index].head));
    // Cuts a cell at its width, even within a word.
    table.set_delimiter('\0');
    let most = width.unwrap_or(MOST_CHARS);
    let mut faint = Vec::with_capacity(rows.len());
    for (mut cells, is_faint) in rows {
        cells.resize(columns.len(), String::new());
        let mut cell = |index: usize| shorten_cell(std::mem::take(&mut cells[index]), most);
        let mut row = Row::from(shown.iter().map(|(index, _)| cell(*index)).collect::<Vec<_>>());
        row.max_height(1);
        table.add_row(row);
        faint.push(is_faint);
    }
    let columns_of = |width: usize| u16::try_from(width + GAP).unwrap_or(u16::MAX);
    if let Some(width) = width {
        table.set_width(columns_of(width)).set_content_arrangement(ContentArrangement::Dynamic);
    }
    for ((_, least), column) in shown.iter().zip(table.column_iter_mut()) {
        column.set_padding((0, 2));
        if width.is_some() {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(columns_of(*least))));
        }
    }
    let mut out = String::new();
    for (index, line) in table.lines().enumerate() {
        let line = line.trim_end();
        let line = match index.checked_sub(1).map(|row| faint.get(row)) {
            None => with_style(STRONG, line),
            Some(Some(true)) => with_style(FAINT, line),
            Some(_) => line.to_owned(),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Chooses the columns that fit. Returns the index and the least width of each.
fn choose_columns(columns: &[TableColumn<'_>], rows: &[Cells], width: Option<usize>) -> Vec<(usize, usize)> {
    let content = |index: usize| {
        rows.iter().filter_map(|(cells, _)| cells.get(index)).map(|cell| cell.width()).fold(0, usize::max)
    };
    let least = |(index, column): (usize, &TableColumn<'_>)| {
        let content = content(index);
        // An empty column is left out.
        (content > 0 || column.goes == 0).then(|| (index, content.min(column.least).max(column.head.width())))
    };
    let mut shown: Vec<_> = columns.iter().enumerate().filter_map(least).collect();
    let Some(width) = width else { return shown };
    let fits = |shown: &[(usize, usize)]| shown.iter().map(|(_, least)| least + GAP).sum::<usize>() <= width + GAP;
    while !fits(&shown) {
        let next = shown.iter().map(|(index, _)| *index).max_by_key(|index| columns[*index].goes);
        match next.filter(|index| columns[*index].goes > 0) {
            Some(next) => shown.retain(|(index, _)| *index != next),
            // All remaining columns must stay, so each is cut to the width of its head.
            None => return shown.into_iter().map(|(index, _)| (index, columns[index].head.width())).collect(),
        }
    }
    shown
}

fn shorten_cell(mut cell: String, most: usize) -> String {
    // Keeps one character more than fits: the table then marks the cut.
    if let Some((end, _)) = cell.char_indices().nth(most) {
        cell.truncate(end);
        cell.push('…');
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [TableColumn<'_>; 5] = [
        whole_column("KEY", 0),
        cut_column("VALUE", 12, 0),
        cut_column("SCOPE", 8, 1),
        whole_column("AGE", 3),
        whole_column("VARIANT", 2),
    ];

    fn shown(width: Option<usize>, rows: &[[&str; 5]]) -> Vec<String> {
        let rows = rows.iter().map(|row| (row.map(str::to_owned).to_vec(), false)).collect();
        let text = anstream::adapter::strip_str(&render_within(&COLUMNS, rows, width)).to_string();
        text.lines().map(str::to_owned).collect()
    }

    const ROWS: [[&str; 5]; 3] = [
        [
            "build",
            "docker compose build router && docker compose push",
            "repo=github.com/org/http-proxy",
            "3h",
            "8c8c25bb0081",
        ],
        ["日本語", "日本語日本語日本語日本語日本語日本語日本語", "everywhere", "12d", ""],
        ["k", "🚀 launch 👩‍👩‍👧 🇩🇪", "everywhere", "now", "6b64c9434700"],
    ];

    #[test]
    fn nothing_is_wider_than_the_terminal_and_no_head_is_cut() {
        let whole = shown(None, &ROWS);
        assert!(whole[1].contains("docker compose push") && !whole.join("").contains('…'));
        for width in 24..140 {
            let lines = shown(Some(width), &ROWS);
            assert_eq!(lines.len(), 4, "{width}: {lines:#?}");
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:#?}");
            let heads: Vec<_> = lines[0].split_whitespace().collect();
            assert!(heads.starts_with(&["KEY", "VALUE"]), "{width}: {heads:?}");
            assert!(heads.iter().all(|head| COLUMNS.iter().any(|column| column.head == *head)), "{heads:?}");
        }
        assert_eq!(shown(Some(140), &ROWS), whole);
    }

    #[test]
    fn narrow_terminals_get_fewer_columns() {
        let heads = |width| shown(Some(width), &ROWS)[0].split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(heads(60), ["KEY", "VALUE", "SCOPE", "AGE", "VARIANT"]);
        assert_eq!(heads(46), ["KEY", "VALUE", "SCOPE", "VARIANT"]);
        assert_eq!(heads(34), ["KEY", "VALUE", "SCOPE"]);
        assert_eq!(heads(24), ["KEY", "VALUE"]);
        // The table cannot be narrower than its fixed columns.
        assert_eq!(heads(5), ["KEY", "VALUE"]);
    }

    #[test]
    fn wide_characters_are_counted_as_they_are_shown() {
        let lines = shown(Some(60), &ROWS);
        let column_of = |line: &str| {
            let end = line.find("everywhere").or_else(|| line.find("repo=")).unwrap();
            line[..end].width()
        };
        assert_eq!(column_of(&lines[1]), column_of(&lines[2]), "{lines:#?}");
        assert_eq!(column_of(&lines[2]), column_of(&lines[3]), "{lines:#?}");
        assert!(lines[2].contains('…'), "{lines:#?}");
    }

    #[test]
    fn an_empty_column_is_left_out() {
        assert_eq!(shown(None, &[["k", "v", "everywhere", "now", ""]])[0], "KEY  VALUE  SCOPE       AGE");
    }
}
