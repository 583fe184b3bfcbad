// Holds the page's data about the session, which is loaded again after each change.

import {call, here} from '/web/rpc.js'
import {idOf, valueText} from '/web/words.js'

/** The most hints of one answer. */
const MOST = 1000
/** The time for which changes are shown: a week. */
const CHANGES_MS = 7 * 24 * 60 * 60 * 1000

export const state = {
  /** Rows of nudge.query: those that fit the place first, best first. */
  hints: [],
  status: null,
  /** The lines that agents' sessions were told. */
  sessions: [],
  /** The counts of the last days. */
  days: [],
  deletions: [],
  /** The last changes of kept hints and records, the latest first. */
  changes: [],
  /** The agents at this place. */
  agents: [],
  /** The reason why the agents cannot be listed. */
  signalsProblem: '',
  /** The text of the search field. */
  query: '',
  /** The result of the search: `{rows, others}`, rows with their reasons; null without a search. */
  found: null,
  /** The id of the chosen hint. */
  chosen: null,
  view: 'hints',
}

/** Returns the row of a hint, if it is loaded. */
export const rowOf = id =>
  [...state.hints, ...(state.found?.rows ?? []), ...(state.found?.others ?? [])].find(row => idOf(row.hint) === id)

/** Shows no changes while a database cannot be read: the status names it. */
function withoutLog(error) {
  if (error.reason !== 'E_UNAVAILABLE') throw error
  return {changes: []}
}

/** Loads everything. */
export async function load() {
  const context = here()
  const since = new Date(Date.now() - CHANGES_MS).toISOString()
  const [hints, status, deletions, log] = await Promise.all([
    call('nudge.query', {context, include_ineligible: true, limit: MOST}),
    call('nudge.status'),
    call('nudge.deletions'),
    call('nudge.change_log', {since, limit: 200}).catch(withoutLog),
  ])
  state.hints = hints.hints
  state.status = status
  state.deletions = deletions.deletions
  state.changes = log.changes.reverse()
  await search()
}

/** Loads the lines that agents were told; they are not stored data. */
export async function loadSessions() {
  const [{sessions}, {days}] = await Promise.all([call('nudge.client_sessions', {limit: 50}), call('nudge.stats')])
  state.sessions = sessions
  state.days = days
}

/** Searches for the text of the search field: first hints that it brings up here, then all hints with its words. */
export async function search() {
  const query = state.query.trim()
  if (!query) {
    state.found = null
    return
  }
  const {items} = await call('nudge.recall', {query, context: here(), limit: 100, max_bytes: 200_000})
  const rows = items.filter(item => item.hint).map(item => ({...item, why: item.why}))
  const known = new Set(rows.map(row => idOf(row.hint)))
  const words = query.toLowerCase().split(/\s+/)
  const holds = ({hint}) => {
    const all = [hint.component, hint.key, valueText(hint.value), hint.meta.reason ?? '', ...(hint.meta.tags ?? [])]
    const text = all.join('\n').toLowerCase()
    return words.every(word => text.includes(word))
  }
  const all = beyond() ? await withWord(words) : state.hints
  // The person may have typed on meanwhile.
  if (query !== state.query.trim()) return
  state.found = {rows, others: all.filter(row => !known.has(idOf(row.hint)) && holds(row))}
}

/** Searches for the longest word, if the server has more hints than the page has loaded. */
async function withWord(words) {
  const longest = words.reduce((a, b) => (b.length > a.length ? b : a)).slice(0, 200)
  const regex = `(?i)${longest.replace(/[\\^$.*+?()[\]{}|#&~-]/g, '\\$&')}`
  return (await call('nudge.query', {context: here(), include_ineligible: true, limit: MOST, regex})).hints
}

/** Returns the number of stored hints that the page has not loaded. */
export const beyond = () => Math.max(0, (state.status?.hints ?? 0) - state.hints.length)

/** Returns the current row of a hint from the server. */
export async function current(hint) {
  const {component, key} = hint
  const answer = await call('nudge.query', {component, keys: [key], include_ineligible: true, limit: MOST})
  return answer.hints.map(row => row.hint).find(one => idOf(one) === idOf(hint)) ?? null
}
