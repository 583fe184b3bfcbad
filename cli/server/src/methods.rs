//! Lists the methods of a server for the generated files that describe them: types, an `OpenRPC` document, and the page
//! of the methods.

use nudge::MethodSpec;
use nudge_app::sources;
use nudge_core::suggest_service::SuggestService;
use nudge_core::table::TableService as _;

use super::page::SessionPage;
use super::session::control::SessionControl;
use super::session::event::EventService;
use super::session::history::ChangeHistory;
use super::session::status::ServerStatus;

/// Lists every method of a server once: first the server's own methods, then those of the sources.
pub fn list_methods() -> Vec<&'static MethodSpec> {
    let own = [
        SuggestService::TABLE.methods(),
        EventService::TABLE.methods(),
        ServerStatus::TABLE.methods(),
        ChangeHistory::TABLE.methods(),
        SessionControl::TABLE.methods(),
        SessionPage::TABLE.methods(),
    ];
    let mut all = sources::list_methods();
    for row in own.into_iter().flatten() {
        if !all.iter().any(|known| known.name == row.name) {
            all.push(row);
        }
    }
    all
}
