//! Lists the methods of a server for the files that describe them: types, an `OpenRPC` document, the page of the
//! methods.

use nudge::Method;
use nudge_core::suggest_service::SuggestService;
use nudge_core::table::TableService as _;

use super::page::Page;
use super::session::control::Control;
use super::session::history::History;
use super::session::status::ServerStatus;
use crate::sources;

/// Every method that a server answers, once: those of the sources, then its own.
pub fn all() -> Vec<&'static Method> {
    let own = [
        SuggestService::TABLE.methods(),
        ServerStatus::TABLE.methods(),
        History::TABLE.methods(),
        Control::TABLE.methods(),
        Page::TABLE.methods(),
    ];
    let mut all = sources::methods();
    for row in own.into_iter().flatten() {
        if !all.iter().any(|known| known.name == row.name) {
            all.push(row);
        }
    }
    all
}
