// Runs the page of the session: starts it, and follows changes.

import {byId, code, el, fill, toast, undoLast, visible} from '/web/dom.js'
import {brainKeys, countBrain, drawBrain, loadBrain} from '/web/brain.js'
import {codeKeys, countCode, drawCode, isReading, loadCode} from '/web/code.js'
import {create, edit, remove} from '/web/edit.js'
import {back, choose, drawDetail, drawList, isEditing, read, step} from '/web/hints.js'
import {changePlace, drawPlace} from '/web/place.js'
import {count, drawRecords, isEditingRecord, isPartial, loadRecords, recordKeys} from '/web/records.js'
import {Over, enter, follow, isKnown} from '/web/rpc.js'
import {load, loadSessions, rowOf, search, state} from '/web/store.js'
import {drawSignals, loadSignals, openQuestions} from '/web/signals.js'
import {drawDeleted, drawTold} from '/web/told.js'
import {ago, idOf, nameOf} from '/web/words.js'

const VIEWS = ['hints', 'told', 'deleted', 'records', 'code', 'brain', 'signals']
/** The time without an answer after which the page says what to do. */
const SILENCE_MS = 6_000

const field = byId('search')

function notice(...words) {
  fill(byId('notice'), el('p', {}, words))
  byId('notice').hidden = false
}

function live(kind, words) {
  byId('live').dataset.kind = kind
  if (byId('live-text').textContent !== words) byId('live-text').textContent = words
}

/** Shows that the page needs a new `nudge ui`. */
function over(message) {
  live('over', 'Ended')
  notice(el('strong', {}, message), ' In a terminal: ', code('nudge ui'))
  byId('main').inert = true
  byId('place').inert = true
}

function draw() {
  drawPlace()
  drawPutBack()
  drawList()
  drawTold(hintNamed)
  drawDeleted(refresh)
  // The hints of files are not stored by anybody, and not kept.
  const ofFiles = state.status?.keeping?.of_files ?? 0
  byId('count-hints').textContent = state.status ? (state.status.hints ?? 0) - ofFiles : ''
  byId('count-hints').title = ofFiles ? `${ofFiles} more follow the files of repositories` : ''
  byId('count-told').textContent = state.sessions.length || ''
  byId('count-deleted').textContent = state.deletions.length || ''
  drawRecords()
  byId('count-records').textContent = count() || ''
  drawAgents()
  drawFiles()
  return drawDetail()
}

/** Shows that files of the session were removed and have been restored. */
function drawPutBack() {
  const at = state.status?.files_put_back
  byId('put-back').hidden = !at
  byId('put-back').textContent = at ? `Another program removed the session's files. They were put back ${ago(at)}.` : ''
}

function drawAgents() {
  drawSignals()
  byId('count-signals').textContent = openQuestions() || state.agents.length || ''
}

function drawFiles() {
  drawCode()
  byId('count-code').textContent = countCode()
  drawBrain()
  byId('count-brain').textContent = countBrain()
}

/** Loads everything again and shows it. */
async function refresh() {
  await Promise.all([load(), loadSessions(), loadSignals(), loadRecords(), loadCode(), loadBrain()])
  await draw()
}

/** Returns a function that opens the hint of this name, if it is stored. */
function hintNamed(name) {
  const row = state.hints.find(({hint}) => visible(nameOf(hint)) === name)
  if (!row) return null
  return () => {
    leaveSearch()
    view('hints')
    choose(idOf(row.hint), true)
  }
}

function view(name) {
  state.view = name
  for (const one of VIEWS) byId(`view-${one}`).hidden = one !== name
  for (const tab of document.querySelectorAll('nav [data-view]')) {
    if (tab.dataset.view === name) tab.setAttribute('aria-current', 'page')
    else tab.removeAttribute('aria-current')
  }
  document.body.classList.remove('reading')
}

let typed = 0

/** Searches for the typed text, a moment after the last key. */
function ask() {
  state.query = field.value
  clearTimeout(typed)
  typed = setTimeout(async () => {
    if (state.view !== 'hints') view('hints')
    await search().catch(failed)
    // The first result is chosen.
    if (state.found) state.chosen = null
    drawList()
    await drawDetail().catch(failed)
  }, 150)
}

function leaveSearch() {
  if (!field.value && !state.found) return
  field.value = ''
  state.query = ''
  state.found = null
  drawList()
}

function failed(error) {
  if (error instanceof Over) over(error.message)
  else toast(error.message)
}

function chosenHint() {
  return state.view === 'hints' && state.chosen !== null ? rowOf(state.chosen)?.hint : undefined
}

const KEYS = {
  '/': () => { field.focus(); field.select() },
  '?': () => byId('keys').showModal(),
  j: () => step(1),
  ArrowDown: () => step(1),
  k: () => step(-1),
  ArrowUp: () => step(-1),
  Home: () => step(-Infinity),
  End: () => step(Infinity),
  Enter: read,
  e: () => chosenHint() && edit(chosenHint()),
  d: () => chosenHint() && remove(chosenHint()),
  u: undoLast,
  n: () => { view('hints'); create() },
  1: () => view('hints'),
  2: () => view('told'),
  3: () => view('deleted'),
  4: () => view('records'),
  5: () => view('code'),
  6: () => view('brain'),
  7: () => view('signals'),
  Escape: () => { leaveSearch(); back() },
}
/** In these views the list reacts to keys; elsewhere keys belong to the focused element. */
const WITH_LIST = new Set(['hints', 'records', 'code', 'brain'])
const KEYS_OF = {records: recordKeys, code: codeKeys, brain: brainKeys}
const OF_LIST = new Set(['Enter', 'ArrowDown', 'ArrowUp', 'Home', 'End'])

addEventListener('keydown', event => {
  const {key, target} = event
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return
  if (target === field) {
    if (key === 'Escape') {
      leaveSearch()
      back()
    } else if (key === 'ArrowDown' || key === 'Enter') {
      back()
    } else {
      return
    }
    event.preventDefault()
    return
  }
  const editing = state.view === 'records' ? isEditingRecord() : isEditing()
  if (target.closest('input, textarea, select') || (editing && key !== '?')) return
  const inList = target === document.body || target.closest('[role=listbox]') || target === byId('main')
  if (OF_LIST.has(key) && (!inList || !WITH_LIST.has(state.view))) return
  const own = KEYS_OF[state.view] ?? {}
  const keys = Object.hasOwn(own, key) ? own : KEYS
  const act = Object.hasOwn(keys, key) ? keys[key] : null
  if (!act) return
  event.preventDefault()
  Promise.resolve(act()).catch(failed)
})

field.addEventListener('input', ask)
field.addEventListener('leave', () => { leaveSearch(); drawDetail().catch(failed) })
byId('show-keys').addEventListener('click', KEYS['?'])
byId('new-hint').addEventListener('click', KEYS.n)
byId('change-place').addEventListener('click', () => changePlace(refresh))
for (const tab of document.querySelectorAll('nav [data-view]')) tab.addEventListener('click', () => view(tab.dataset.view))
addEventListener('nudge-loaded', () => draw().catch(failed))
addEventListener('unhandledrejection', event => failed(event.reason))
// The user opened a new address in this tab.
addEventListener('hashchange', () => location.hash.startsWith('#code=') && location.reload())

let heardAt = Date.now()

async function heard(changed) {
  heardAt = Date.now()
  byId('notice').hidden = true
  if (changed) {
    await refresh()
  } else {
    // The server reports no changes of signals and of a project's files, so they are loaded each time.
    await Promise.all([loadSessions(), loadSignals(), isPartial() && loadRecords(), (state.view === 'code' || isReading()) && loadCode(), state.view === 'brain' && loadBrain()])
    drawRecords()
    drawAgents()
    drawFiles()
    drawTold(hintNamed)
    byId('count-told').textContent = state.sessions.length || ''
  }
  live('live', 'Live')
}

function silent() {
  live('silent', 'No answer')
  if (Date.now() - heardAt < SILENCE_MS) return
  notice(
    el('strong', {}, 'The server does not answer.'),
    ' It is asked again and again. If its session has ended, start one with ', code('nudge serve --detach'), ', then run ', code('nudge ui'), '.',
  )
}

async function begin() {
  const shown = /^#code=([0-9a-f]{1,200})$/.exec(location.hash)
  // The code must not stay in the browser's history.
  if (shown) history.replaceState(null, '', location.pathname)
  if (shown) {
    try {
      await enter(shown[1])
    } catch (error) {
      if (!isKnown()) throw error
    }
  }
  if (!isKnown()) throw new Over('This page is opened from a terminal.')
  drawPlace()
  await follow(heard, silent)
}

begin().catch(error => over(error.message))
