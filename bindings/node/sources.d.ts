// Generated from the method tables; UPDATE=1 cargo test -p nudge-tests --test typegen writes it anew.

/** What a connected store has besides the hints: a source by its name. */
export interface Sources {
}
