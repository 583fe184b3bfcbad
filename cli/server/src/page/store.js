// What the page knows of the session, read anew whenever something changes.

import {call, here} from '/web/rpc.js'
import {idOf, valueText} from '/web/words.js'

/** Most hints that one call answers. */
const MOST = 1000

export const state = {
  /** Rows of nudge.query: those that fit here first, best first. */
  hints: [],
  status: null,
  /** What agents' sessions were told. */
  sessions: [],
  deletions: [],
  /** The agents beside each other here. */
  agents: [],
  /** Why they cannot be told. */
  signalsProblem: '',
  /** What stands in the search field. */
  query: '',
  /** The answer to that: `{rows, others}`, rows with why; null without a question. */
  found: null,
  /** The id of the hint that is chosen. */
  chosen: null,
  view: 'hints',
}

/** The row of a hint, if it is known. */
export const rowOf = id =>
  [...state.hints, ...(state.found?.rows ?? []), ...(state.found?.others ?? [])].find(row => idOf(row.hint) === id)

/** Reads everything. */
export async function load() {
  const context = here()
  const [hints, status, deletions] = await Promise.all([
    call('nudge.query', {context, include_ineligible: true, limit: MOST}),
    call('nudge.status'),
    call('nudge.deletions'),
  ])
  state.hints = hints.hints
  state.status = status
  state.deletions = deletions.deletions
  await search()
}

/** Reads what agents were told; that is no change of what is stored. */
export async function loadSessions() {
  state.sessions = (await call('nudge.client_sessions', {limit: 50})).sessions
}

/** Answers what stands in the search field: what it brings to mind here, then what holds its words anywhere. */
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
  // Somebody may have typed on meanwhile.
  if (query !== state.query.trim()) return
  state.found = {rows, others: all.filter(row => !known.has(idOf(row.hint)) && holds(row))}
}

/** Of more hints than are known here, those that hold the longest of the words. */
async function withWord(words) {
  const longest = words.reduce((a, b) => (b.length > a.length ? b : a)).slice(0, 200)
  const regex = `(?i)${longest.replace(/[\\^$.*+?()[\]{}|#&~-]/g, '\\$&')}`
  return (await call('nudge.query', {context: here(), include_ineligible: true, limit: MOST, regex})).hints
}

/** How many hints are stored beyond those that are known here. */
export const beyond = () => Math.max(0, (state.status?.hints ?? 0) - state.hints.length)

/** The row of a hint as it stands on the server now. */
export async function current(hint) {
  const {component, key} = hint
  const answer = await call('nudge.query', {component, keys: [key], include_ineligible: true, limit: MOST})
  return answer.hints.map(row => row.hint).find(one => idOf(one) === idOf(hint)) ?? null
}
