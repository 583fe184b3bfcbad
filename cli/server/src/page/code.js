// Shows the code of the project at the chosen place: folders, files, definitions, and callers.

import {block, button, code, el, fill, line, since, text, toast} from '/web/dom.js'
import {explorer} from '/web/explore.js'
import {linkGraph} from '/web/graph.js'
import {Over, call, here} from '/web/rpc.js'
import {plural} from '/web/words.js'

const shown = {
  /** The answer of nudge.code.status; null without a project. */
  status: null,
  /** The reason why there is no project. */
  problem: '',
  /** The open folder, and its content. */
  folder: null,
  query: '',
  /** The answer to the search. */
  found: null,
  /** The choice, `{path}` of a file or `{id}` of a definition, and its data. */
  chosen: null,
  told: null,
}

const explore = explorer({view: 'view-code', find: 'Search definitions', listName: 'Code', chosenName: 'The chosen code', search: ask, failed: say})
const {stands, list, detail} = explore

/** Returns the number of definitions, for the tab. */
export const countCode = () => shown.status?.nodes || ''

/** Returns true while files are still being read, since the server does not report the end. */
export const isReading = () => Boolean(shown.status && (!shown.status.as_of.complete || shown.status.as_of.pending))

function say(error) {
  if (error instanceof Over) throw error
  toast(error.message)
}

let asked = 0

/** Loads the status of the index and the open entry. A place without a project is no error. */
export async function loadCode() {
  const mine = ++asked
  const context = here()
  try {
    const status = await call('nudge.code.status', {context})
    const [folder, found, told] = await Promise.all([
      call('nudge.code.file', {path: shown.folder?.path ?? '.', root: status.root, context}).catch(() => call('nudge.code.file', {path: '.', root: status.root, context})),
      search(context),
      look(context),
    ])
    if (mine !== asked) return
    Object.assign(shown, {status, folder, found, told, problem: ''})
  } catch (error) {
    if (error instanceof Over || !error.reason) throw error
    if (mine === asked) Object.assign(shown, {status: null, folder: null, found: null, told: null, problem: error.reason === 'E_UNKNOWN_METHOD' ? 'This server reads no code.' : error.message})
  }
}

const search = context => (shown.query.trim() ? call('nudge.code.search', {query: shown.query, limit: 100, context}) : null)

async function look(context) {
  const {chosen} = shown
  if (!chosen) return null
  const method = chosen.id ? 'nudge.code.node' : 'nudge.code.file'
  return call(method, {...chosen, context}).catch(error => {
    if (error instanceof Over || !error.reason) throw error
    return {problem: error.message}
  })
}

let drawn = ''

/** Draws the view if any part of it has changed. */
export function drawCode() {
  explore.begin(button('Look again', () => again().catch(say), {class: 'quiet'}))
  const picture = JSON.stringify(shown)
  if (picture === drawn) return
  drawn = picture
  fill(stands, shown.status ? standing(shown.status) : problem())
  fill(list, shown.status && (shown.found ? shown.found.nodes.map(found) : folder(shown.folder)))
  drawDetail()
}

const problem = () => [
  el('strong', {}, 'No code is known here.'), ' ', text(shown.problem), ' In the folder of a project: ', code('nudge code status'),
]

function standing({files, nodes, languages, skipped, watch, as_of: {indexed_at: at, pending, complete, truncated}}) {
  const left = Object.entries(skipped)
  const total = left.reduce((sum, [, count]) => sum + count, 0)
  const parts = Object.entries(languages).sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} ${count}`)
  return [
    el('p', {}, `${plural(nodes, 'definition')} in ${plural(files, 'file')}`, parts.length > 0 && ` · ${parts.join(', ')}`),
    el('p', {class: 'faint'}, complete ? 'All of it has been read' : 'It is being read', pending > 0 && `, ${plural(pending, 'file')} to look at`, at && [' · ', since(at)], ` · ${watch.endsWith('folders') ? `watched, ${watch}` : watch}`),
    truncated && el('p', {class: 'notice'}, 'There is more than fits; what git changed last was read first.'),
    total > 0 && el('details', {}, el('summary', {}, `${plural(total, 'file')} left out`), el('ul', {class: 'skipped'}, left.map(([reason, count]) => el('li', {}, `${count} `, text(reason.replaceAll('_', ' ')))))),
  ]
}

function folder({path, folders, files}) {
  const up = path && path !== '.' ? [explore.row('up', false, () => open(path.split('/').slice(0, -1).join('/') || '.'), el('p', {class: 'name'}, '..'), el('p', {class: 'facts'}, text(path)))] : []
  const inner = folders.map(one => explore.row(`folder-${one.path}`, false, () => open(one.path), el('p', {class: 'name'}, text(`${one.path.split('/').pop()}/`)), el('p', {class: 'facts'}, plural(one.files, 'file'))))
  const own = files.map(one => explore.row(
    `file-${one.path}`, one.path === shown.chosen?.path, () => choose({path: one.path}),
    el('p', {class: 'name'}, text(one.path.split('/').pop())),
    el('p', {class: 'facts'}, one.skipped ? `left out: ${one.skipped.replaceAll('_', ' ')}` : [one.language, plural(one.nodes, 'definition')].filter(Boolean).join(' · '), one.parse_errors && ' · parts of it are not valid'),
  ))
  const none = folders.length + files.length ? [] : [el('p', {class: 'empty'}, 'No code that is understood stands here.')]
  return [...up, ...inner, ...own, ...none]
}

function found(one) {
  return explore.row(
    `node-${one.id}`, one.id === shown.chosen?.id, () => choose({id: one.id}),
    el('p', {class: 'name'}, text(nameOf(one.id))),
    el('p', {class: 'value'}, line(one.signature, 160)),
    el('p', {class: 'facts'}, `${one.kind} · `, text(`${pathOf(one.id)}:${one.line}`), ` · ${one.reason}`),
  )
}

/** Makes an edge of the graph from a call; a call outside of all definitions has no definition. */
const edge = ({id, path, line: at}) => ({id, name: id ? nameOf(id) : path, title: `${id ? `${nameOf(id)}, ` : ''}${path}:${at}`})

const pathOf = id => id.slice('node:'.length, id.lastIndexOf(':'))
const nameOf = id => id.slice(id.lastIndexOf(':') + 1)

function drawDetail() {
  const {told} = shown
  if (!told) fill(detail, el('p', {class: 'empty'}, 'Choose a file or a definition.'))
  else if (told.problem) fill(detail, el('p', {class: 'notice'}, text(told.problem)))
  else if (told.node) fill(detail, node(told))
  else fill(detail, file(told))
}

const to = (id, words = nameOf(id)) => explore.link(`to-${id}`, () => choose({id}), text(words))
const toFile = path => explore.link(`to-${path}`, () => choose({path}), text(path))
const fresh = how => (how === false ? el('p', {class: 'notice'}, 'It has changed since it was read, and is too large to be read again at once.') : null)

function node({node: {id, kind, line: at, end_line: end, signature, doc, complexity, bases, drift, fresh: how, test}, callers, omitted, unresolved_same_name: unresolved, callees, tests}) {
  const wrong = (drift ?? []).map(({detail: what}) => el('p', {class: 'problem'}, text(`Its doc ${what}.`)))
  return [
    explore.toList(),
    el('h2', {}, text(nameOf(id))),
    el('p', {class: 'facts'}, test ? 'test' : kind, ' · ', toFile(pathOf(id)), ` · lines ${at} to ${end} · complexity ${complexity}`),
    fresh(how),
    block(signature, {'aria-label': 'Signature'}),
    doc && block(doc, {'aria-label': 'Doc'}),
    wrong,
    bases?.length > 0 && el('p', {}, 'extends ', text(bases.join(', '))),
    el('h3', {}, 'Callers and calls'),
    callers.length + callees.length ? linkGraph(nameOf(id), callers, callees, {of: edge, choose: one => choose({id: one}).catch(say)}) : el('p', {class: 'faint'}, 'None that is certain.'),
    omitted > 0 && el('p', {class: 'faint'}, `${omitted} more call it.`),
    unresolved > 0 && el('p', {class: 'faint'}, `${plural(unresolved, 'more call')} of this name may mean it or another.`),
    el('h3', {}, 'Tests'),
    testsOf(tests),
  ]
}

function testsOf({links = [], named = [], command}) {
  const rows = links.map(({id, test, how, depth}) => el('li', {}, to(id ?? test), ` ${how === 'calls' ? 'calls it' : how === 'ran' ? 'ran it' : how === 'reaches' ? `reaches it over ${depth} calls` : how}`))
  const files = named.map(path => el('li', {}, toFile(path), ' is named after it'))
  return [
    rows.length + files.length ? el('ul', {class: 'tests'}, rows, files) : el('p', {class: 'faint'}, 'None found by name or call.'),
    command && block(command, {'aria-label': 'Command'}),
  ]
}

function file({path, language, parse_errors: errors, imports, imported_by: importers, nodes, fresh: how}) {
  const definitions = nodes.map(({id, kind, line: at, signature}) => el('li', {}, to(id), el('span', {class: 'faint'}, ` ${kind}, line ${at} `), line(signature, 120)))
  return [
    explore.toList(),
    el('h2', {}, text(path)),
    el('p', {class: 'facts'}, language, errors && ' · parts of it are not valid'),
    fresh(how),
    el('h3', {}, plural(nodes.length, 'definition')),
    el('ul', {class: 'definitions'}, definitions),
    imports.length > 0 && [el('h3', {}, 'Imports'), el('ul', {}, imports.map(one => el('li', {}, one.path ? toFile(one.path) : text(one.module))))],
    importers.length > 0 && [el('h3', {}, 'Imported by'), el('ul', {}, importers.map(one => el('li', {}, toFile(one))))],
  ]
}

async function choose(what) {
  shown.chosen = what
  shown.told = await look(here())
  drawCode()
  explore.read()
}

async function open(path) {
  const folder = await call('nudge.code.file', {path, root: shown.status.root, context: here()})
  Object.assign(shown, {folder})
  drawCode()
  explore.first()
}

async function again() {
  await call('nudge.code.refresh', {context: here()})
  await loadCode()
  drawCode()
}

async function ask(query) {
  shown.query = query
  const mine = ++asked
  const answer = await search(here())
  if (mine !== asked) return
  shown.found = answer
  drawCode()
}

/** The keys of this view. */
export const codeKeys = explore.keys
