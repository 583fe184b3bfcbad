// Shows the list of records: filtered, searched, or the pairs of possible duplicates.

import {button, byId, code, el, fill, line, since, text, toast, visible} from '/web/dom.js'
import {listKeys, searchField} from '/web/explore.js'
import {detail, drawRecord, edit, forgetRecord, isEditingRecord, isOpen, look, remove} from '/web/record.js'
import {Over, call, here} from '/web/rpc.js'
import {state} from '/web/store.js'
import {plural} from '/web/words.js'
import {KINDS, STATES, shown} from '/web/recorded.js'

/** The number of entries that one call loads, and the maximum. */
const PAGE = 100
const MOST = 1000
/** The most pairs that are shown. */
const PAIRS = 50
const MODES = {lexical: 'by words alone', semantic: 'by meaning', mixed: 'by meaning, some by words alone'}

const view = byId('view-records')
const project = el('select', {name: 'project', onchange: () => narrow('project', project.value)})
const field = searchField('Search records', {ask: query => narrow('query', query), step, back})
const pairsButton = button('Duplicates', () => togglePairs(), {class: 'quiet', 'aria-pressed': 'false'})
const found = el('p', {class: 'found', role: 'status'})
const list = el('div', {class: 'records', role: 'listbox', 'aria-label': 'Records', tabindex: '-1'})
const more = button('More', () => readOn().catch(say), {hidden: true})

/** Returns the number of records, for the tab. */
export const count = () => shown.projects.reduce((sum, one) => sum + one.records, 0)

/**
 * Returns true if the result may improve later, because the model is being loaded or added, or makes vectors. The
 * server does not report the end of that.
 */
export const isPartial = () =>
  shown.pairs ? shown.pairs.problem !== '' || shown.pairs.uncompared > 0 : shown.mode !== '' && shown.mode !== 'semantic'

export {isEditingRecord}

function say(error) {
  if (error instanceof Over) throw error
  toast(error.message)
}

let asked = 0

/** Loads the rows for the filters. */
export async function loadRecords() {
  try {
    shown.projects = (await call('nudge.records.projects')).projects
    await find()
  } catch (error) {
    // A server of an older version has no records.
    if (error instanceof Over || error.reason !== 'E_UNKNOWN_METHOD') throw error
  }
}

const filters = () => ({project: shown.project || '*', kind: shown.kind, status: shown.status, context: here()})

async function find() {
  const mine = ++asked
  const {id} = shown
  const next = shown.pairs ? await readPairs() : shown.query.trim() ? await search() : await read()
  // If the record was deleted, none is chosen.
  const record = id === null ? null : await call('nudge.records.get', {id, revisions: true}).catch(gone)
  // The person may have typed or chosen something else meanwhile.
  if (mine !== asked) return
  Object.assign(shown, next)
  if (id === shown.id) Object.assign(shown, {record, id: record?.id ?? null})
}

function gone(error) {
  if (error.reason !== 'E_NOT_FOUND') throw error
  return null
}

async function read() {
  // Loads as many entries as the person has already loaded.
  const limit = Math.min(MOST, Math.max(PAGE, shown.mode ? 0 : shown.rows.length))
  const {records, total, next = null} = await call('nudge.records.list', {...filters(), limit})
  return {rows: records, total, next, mode: '', degraded: []}
}

async function search() {
  const {results, omitted, mode, degraded} = await call('nudge.records.search', {...filters(), query: shown.query, limit: 50, explain: true})
  return {rows: results, total: results.length + omitted, next: null, mode, degraded}
}

async function readPairs() {
  const {project: name, context} = filters()
  try {
    const {duplicates, omitted, uncompared} = await call('nudge.records.duplicates', {project: name, context, limit: PAIRS})
    return {pairs: {duplicates, omitted, uncompared, problem: ''}}
  } catch (error) {
    if (error.reason !== 'E_UNAVAILABLE') throw error
    return {pairs: {duplicates: [], omitted: 0, uncompared: 0, problem: error.message}}
  }
}

async function readOn() {
  const mine = ++asked
  const {records, next = null} = await call('nudge.records.list', {...filters(), limit: PAGE, before: shown.next})
  if (mine !== asked) return
  Object.assign(shown, {rows: [...shown.rows, ...records], next})
  drawRows()
}

let begun = false
let rowsDrawn = ''
let projectsDrawn = ''

/** Draws the view; an open form or comparison stays. */
export function drawRecords() {
  if (!begun) begin()
  drawProjects()
  drawRows()
  if (!isOpen()) drawRecord()
}

function begin() {
  begun = true
  const select = (name, label, options) =>
    el('label', {}, el('span', {class: 'unseen'}, label), el('select', {name, onchange: event => narrow(name, event.target.value)}, options))
  const option = (value, words) => el('option', {value}, words)
  const bar = el(
    'div',
    {class: 'bar', role: 'search'},
    field,
    el('label', {}, el('span', {class: 'unseen'}, 'Project'), project),
    select('kind', 'Kind', [option('', 'every kind'), Object.entries(KINDS).map(([kind, words]) => option(kind, `${kind}: ${words}`))]),
    select('status', 'Status', [option('', 'wherever they stand'), STATES.map(status => option(status, status))]),
    pairsButton,
    button('Export', () => exportAll().catch(say), {class: 'quiet'}),
    button('New record', () => edit(null), {class: 'quiet'}),
  )
  fill(view, bar, el('div', {class: 'columns'}, el('div', {class: 'column'}, found, list, more), detail))
  detail.addEventListener('stored', () => redraw().catch(say))
  detail.addEventListener('left', () => back())
}

function drawProjects() {
  const picture = JSON.stringify([shown.projects, shown.project])
  if (picture === projectsDrawn) return
  projectsDrawn = picture
  const options = shown.projects.map(({name, records}) => el('option', {value: name, selected: name === shown.project}, `${visible(name)} (${records})`))
  fill(project, el('option', {value: '', selected: shown.project === ''}, 'every project'), options)
}

async function redraw() {
  await loadRecords()
  drawRecords()
}

async function narrow(name, value) {
  shown[name] = value
  if (name === 'query' && value.trim()) leavePairs()
  await find().catch(say)
  drawRecords()
}

function leavePairs() {
  Object.assign(shown, {pairs: null, pair: null})
  for (const select of view.querySelectorAll('select[name=kind], select[name=status]')) select.disabled = false
  pairsButton.setAttribute('aria-pressed', 'false')
}

async function togglePairs() {
  if (staysOpen()) return
  if (shown.pairs) {
    leavePairs()
  } else {
    Object.assign(shown, {pairs: {duplicates: [], omitted: 0, uncompared: 0, problem: ''}, query: '', id: null, record: null})
    for (const select of view.querySelectorAll('select[name=kind], select[name=status]')) select.disabled = true
    field.value = ''
    pairsButton.setAttribute('aria-pressed', 'true')
  }
  forgetRecord()
  await find().catch(say)
  drawRecords()
}

/** Returns true if a form is open, and says that it must be closed first. */
function staysOpen() {
  if (isEditingRecord()) toast('Store or cancel what you are editing first.')
  return isEditingRecord()
}

/** Returns everything that the rows show, to see whether they have changed. */
const rowsPicture = () => JSON.stringify([shown.rows, shown.pairs, shown.id, shown.pair, shown.mode, shown.project])

function drawRows() {
  const {rows, pairs, next, project: name, mode} = shown
  fill(found, pairs ? pairWords(pairs) : foundWords())
  const picture = rowsPicture()
  if (picture === rowsDrawn) return
  rowsDrawn = picture
  more.hidden = Boolean(pairs) || !next
  list.setAttribute('aria-label', pairs ? 'Pairs of records' : 'Records')
  if (pairs) {
    fill(list, pairs.duplicates.map(pairRow))
    return
  }
  // A search also finds records of other projects, and says so.
  const away = mode && name ? rows.filter(one => one.elsewhere) : []
  const group = (title, of) => of.length ? el('div', {role: 'group', 'aria-label': title}, el('h2', {}, title), of.map(row)) : null
  if (away.length) fill(list, group('In this project', rows.filter(one => !one.elsewhere)), group('In other projects', away))
  else fill(list, rows.map(row))
}

function foundWords() {
  const {total, rows, mode, degraded} = shown
  const none = mode || shown.project || shown.kind || shown.status
    ? 'No record is like that.'
    : [el('strong', {}, 'No record yet.'), ' Agents save what they fixed, decided and planned. You can, too: with “New record”, or in a terminal: ', code('nudge records add --kind issue --title "…"')]
  const how = mode && ` · found ${MODES[mode] ?? mode}${degraded.length ? `: ${degraded.join('; ')}` : ''}`
  return [total ? plural(total, 'record') : none, total > rows.length && ` · ${mode ? 'the best' : 'the newest'} ${rows.length} are shown`, how && el('span', {class: 'mode'}, how), full()]
}

/** Shows how full the database is, when little room is left. */
function full() {
  const told = state.status?.records?.full
  return told && el('span', {class: 'mode'}, ` · ${told}`)
}

function pairWords({duplicates, omitted, uncompared, problem}) {
  if (problem) return problem
  const words = duplicates.length ? `${plural(duplicates.length, 'pair')} of a project and kind that mean nearly the same` : 'No two records of a project and kind mean nearly the same.'
  return [words, omitted > 0 && ` · ${omitted} more`, uncompared > 0 && ` · ${plural(uncompared, 'record')} not compared yet`]
}

function why({relevance, weak, explain: {words, of}}) {
  const holds = of ? `holds ${words.length} of ${plural(of, 'word')}${words.length ? `: ${words.join(', ')}` : ''}` : 'by its meaning'
  return `${weak ? 'weak: ' : ''}relevance ${relevance.toFixed(2)}, ${holds}`
}

const option = (id, chosen, extra, ...children) =>
  el('div', {role: 'option', class: `row ${extra}`.trim(), tabindex: chosen ? '0' : '-1', 'aria-selected': String(chosen), 'data-focus': id, onclick: () => choose(id, true).catch(say)}, children)

function row(one) {
  const {id, title, body, kind, status, project: name, updated_at: at, explain, elsewhere} = one
  const chips = [elsewhere && shown.project && ['elsewhere', ''], status !== 'open' && [status, status === 'resolved' ? 'good' : '']].filter(Boolean)
  return option(
    `record-${id}`, id === shown.id, status === 'archived' ? 'away' : '',
    el('p', {class: 'name'}, line(title, 140)),
    body && el('p', {class: 'value'}, line(body, 160)),
    el('p', {class: 'facts'}, `${kind} · `, line(name, 60)),
    explain && el('p', {class: 'facts'}, line(why(one), 200)),
    el('p', {class: 'chips'}, chips.map(([words, look]) => el('span', {class: `chip ${look}`}, words)), since(at)),
  )
}

const pairId = ({ids}) => `pair-${ids.join('-')}`

function pairRow(pair) {
  const {title, other_title: other, kind, project: name} = pair
  return option(
    pairId(pair), pairId(pair) === shown.pair, '',
    el('p', {class: 'name'}, line(title, 140)),
    el('p', {class: 'value'}, line(other, 140)),
    el('p', {class: 'facts'}, `records ${pair.ids.join(' and ')} · ${kind} · `, line(name, 60)),
    el('p', {class: 'chips'}, el('span', {class: 'chip'}, `${pair.distance.toFixed(2)} apart`)),
  )
}

const options = () => [...list.querySelectorAll('[role=option]')]

/** Resolves when the chosen row is loaded; the action of a key waits for that row. */
let looking = Promise.resolve()

/** Chooses a row by its name; `goes` moves the focus to it if list and record are not side by side. */
async function choose(name, goes = false) {
  if (staysOpen()) return
  const pair = shown.pairs?.duplicates.find(one => pairId(one) === name)
  shown.pair = pair ? name : null
  shown.id = pair ? null : Number(name.slice('record-'.length))
  for (const one of options()) {
    const chosen = one.dataset.focus === name
    one.setAttribute('aria-selected', String(chosen))
    one.tabIndex = chosen ? 0 : -1
    if (chosen) {
      one.focus({preventScroll: true})
      one.scrollIntoView({block: 'nearest'})
    }
  }
  // The rows show the choice already; drawing them again during a click would lose the click.
  rowsDrawn = rowsPicture()
  if (goes) document.body.classList.add('reading')
  looking = look(pair?.ids)
  await looking
}

const chosenName = () => shown.pair ?? `record-${shown.id}`

/** Moves the choice by so many rows; without a choice, to the first row. */
function step(by) {
  const all = options()
  const at = all.findIndex(one => one.dataset.focus === chosenName())
  const next = all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + by))]
  if (next) return choose(next.dataset.focus)
}

function back() {
  document.body.classList.remove('reading')
  options().find(one => one.dataset.focus === chosenName())?.focus()
}

async function withChosen(act) {
  await looking
  if (shown.record && shown.record.id === shown.id && !isOpen()) await act(shown.record)
}

/** The keys of this view. */
export const recordKeys = {
  ...listKeys(field, step, back),
  Enter: () => { document.body.classList.add('reading'); detail.focus() },
  e: () => withChosen(edit),
  d: () => withChosen(remove),
  n: () => edit(null),
}

/** Exports the records of the project, or all, as a file for `nudge records import`. */
async function exportAll() {
  const all = {records: []}
  for (let after = 0; after !== undefined;) {
    const {records, next, ...others} = await call('nudge.records.export', {...(shown.project && {project: shown.project}), after})
    Object.assign(all, others)
    all.records.push(...records)
    after = next
  }
  const url = URL.createObjectURL(new Blob([`${JSON.stringify(all, null, 2)}\n`], {type: 'application/json'}))
  el('a', {href: url, download: 'nudge-records.json'}).click()
  URL.revokeObjectURL(url)
  toast(`Exported ${plural(all.records.length, 'record')}; nudge records import FILE takes them in elsewhere.`)
}
