// Records: a list that is narrowed and searched, and the one that is chosen.

import {block, button, byId, code, el, field, fill, line, since, text, toast} from '/web/dom.js'
import {call, change, here, Over} from '/web/rpc.js'
import {plural} from '/web/words.js'

const KINDS = {issue: 'bug fixed', spec: 'plan', arch: 'decision', update: 'improvement'}
const STATES = ['open', 'resolved', 'archived']
/** What the parts of a relevance say. */
const PARTS = {
  similarity: 'by meaning', words: 'by the words it holds', stems: 'by how rare those are', trigrams: 'by parts of words', project: 'of this project',
}
/** Entries that are read at once. */
const MOST = 100
const view = byId('view-records')

/** What is shown: the filters, the rows, the record that is chosen, and why it was found. */
const shown = {project: '', kind: '', status: '', query: '', rows: [], total: 0, next: null, mode: '', degraded: [], projects: [], id: null, record: null, form: false}
let drawn = false

/** Whether there is anything, for the tab. */
export const count = () => shown.projects.reduce((sum, project) => sum + project.records, 0)

/** Reads what the filters ask for. */
export async function loadRecords() {
  try {
    shown.projects = (await call('nudge.records.projects')).projects
    await find()
  } catch (error) {
    // A server of a version without records.
    if (error instanceof Over || error.reason !== 'E_UNKNOWN_METHOD') throw error
  }
}

async function find() {
  const {project, kind, status, query} = shown
  const asked = {project: project || '*', kind, status, context: here()}
  if (query.trim()) {
    const found = await call('nudge.records.search', {...asked, query, limit: 50, explain: true})
    Object.assign(shown, {rows: found.results, total: found.results.length + found.omitted, next: null, mode: found.mode, degraded: found.degraded})
  } else {
    const listed = await call('nudge.records.list', {...asked, limit: MOST})
    Object.assign(shown, {rows: listed.records, total: listed.total, next: listed.next ?? null, mode: '', degraded: []})
  }
  // Somebody may have deleted it.
  shown.record = shown.id === null ? null : await call('nudge.records.get', {id: shown.id, revisions: true}).catch(() => null)
  if (!shown.record) shown.id = null
}

async function more() {
  const {project, kind, status, next, rows} = shown
  const listed = await call('nudge.records.list', {project: project || '*', kind, status, limit: MOST, before: next, context: here()})
  Object.assign(shown, {rows: [...rows, ...listed.records], next: listed.next ?? null})
  drawRows()
}

/** Draws the view; a form that somebody fills in stays. */
export function drawRecords() {
  if (!drawn) begin()
  drawProjects()
  drawRows()
  if (!shown.form) drawRecord()
}

const rows = el('div', {class: 'column'})
const detail = el('article', {class: 'record', 'aria-label': 'The chosen record', tabindex: '-1'})
const project = el('select', {name: 'project', onchange: () => narrow('project', project.value)})

function begin() {
  drawn = true
  const select = (name, label, options) =>
    el('label', {}, el('span', {class: 'unseen'}, label), el('select', {name, onchange: event => narrow(name, event.target.value)}, options))
  const option = (value, words) => el('option', {value}, words)
  const field = el('input', {
    type: 'search', name: 'query', placeholder: 'Search records', 'aria-label': 'Search records', autocomplete: 'off', maxlength: '1000',
    oninput: () => ask(field.value),
  })
  const bar = el(
    'p',
    {class: 'bar'},
    field,
    el('label', {}, el('span', {class: 'unseen'}, 'Project'), project),
    select('kind', 'Kind', [option('', 'every kind'), Object.entries(KINDS).map(([kind, words]) => option(kind, `${kind}: ${words}`))]),
    select('status', 'Status', [option('', 'wherever they stand'), STATES.map(status => option(status, status))]),
    button('New record', () => edit(null), {class: 'quiet'}),
    button('Export', exportAll, {class: 'quiet'}),
  )
  fill(view, bar, el('div', {class: 'columns'}, rows, detail))
}

function drawProjects() {
  const options = shown.projects.map(({name, records}) => el('option', {value: name, selected: name === shown.project}, `${name} (${records})`))
  fill(project, el('option', {value: '', selected: shown.project === ''}, 'every project'), options)
}

let typed = 0

function ask(query) {
  clearTimeout(typed)
  typed = setTimeout(() => narrow('query', query), 150)
}

async function narrow(name, value) {
  shown[name] = value
  await find().catch(say)
  drawRecords()
}

function say(error) {
  if (error instanceof Over) throw error
  toast(error.message)
}

function drawRows() {
  const {query, total, degraded, mode} = shown
  const none = query || shown.project || shown.kind || shown.status
    ? 'No record is like that.'
    : [el('strong', {}, 'No record yet.'), ' Agents save what they fixed, decided and planned; you can, too: ', code('nudge records add --kind issue "…"')]
  const words = mode && el('span', {class: 'faint'}, ` · found ${{lexical: 'by words', semantic: 'by meaning', mixed: 'by meaning and by words'}[mode]}`, degraded.length ? `: ${degraded.join('; ')}` : '')
  fill(
    rows,
    el('p', {class: 'found', role: 'status'}, total ? plural(total, 'record') : none, words),
    el('ul', {class: 'plain'}, shown.rows.map(row)),
    shown.next && button('More', () => more().catch(say)),
  )
}

function row(one) {
  const {id, title, kind, status, project: name, updated_at: at, explain} = one
  const why = explain && `holds ${explain.words.length} of ${plural(explain.of, 'word')}${explain.words.length ? `: ${explain.words.join(', ')}` : ''}`
  return el(
    'li',
    {},
    el(
      'button',
      {type: 'button', class: id === shown.id ? 'record-row chosen' : 'record-row', 'aria-pressed': String(id === shown.id), 'data-focus': `record-${id}`, onclick: () => choose(id)},
      el('b', {}, line(title, 140)),
      el('span', {class: 'facts'}, `${kind}, ${status} · `, text(name), ' · ', since(at)),
      why && el('span', {class: 'facts'}, text(why)),
    ),
  )
}

async function choose(id) {
  if (shown.form) {
    toast('Store or cancel what you are editing first.')
    return
  }
  shown.id = id
  shown.record = await call('nudge.records.get', {id, revisions: true}).catch(error => (say(error), null))
  drawRows()
  drawRecord()
  detail.focus({preventScroll: true})
}

function drawRecord() {
  const {record} = shown
  if (!record) {
    fill(detail, el('p', {class: 'empty'}, 'Choose a record to read it.'))
    return
  }
  const {id, title, body, kind, status, project: name, version, by, origin, created_at: made, updated_at: changed} = record
  const found = shown.rows.find(one => one.id === id)?.explain
  fill(
    detail,
    el('div', {class: 'head'}, el('h2', {class: 'title'}, text(title)), el('p', {class: 'actions'}, button('Edit', () => edit(record)), button('Delete', () => remove(record)))),
    body ? block(body) : el('p', {class: 'empty'}, 'It has no body.'),
    el(
      'dl',
      {class: 'facts'},
      [
        ['Kind', `${kind}: ${KINDS[kind]}`], ['Status', status], ['Project', text(name)], ['Number', `${id}, version ${version}`],
        ['Saved', since(made)], ['Changed', [since(changed), by ? [' by ', text(by)] : null, ` (${origin})`].flat()],
      ].map(([term, fact]) => [el('dt', {}, term), el('dd', {}, fact)]),
    ),
    found && el('section', {}, el('h3', {}, 'Why it was found'), el('ul', {}, Object.entries(found.parts).map(([part, value]) => el('li', {}, `${value.toFixed(2)} ${PARTS[part] ?? part}`)))),
    others(record),
    record.revisions.length > 0 && el('section', {}, el('h3', {}, 'What it said before'), el('ul', {class: 'plain'}, record.revisions.map(one => revision(record, one)))),
  )
}

/** Those in the list that it could be merged with: of its project and kind. */
function others(record) {
  const same = shown.rows.filter(one => one.id !== record.id && one.project === record.project && one.kind === record.kind).slice(0, 20)
  if (!same.length) return null
  const select = el('select', {'aria-label': 'Another record of this project and kind'}, same.map(one => el('option', {value: String(one.id)}, `${one.id}: ${one.title.slice(0, 80)}`)))
  return el('section', {}, el('h3', {}, 'Does another one say the same?'), el('p', {class: 'actions'}, select, button('Compare', () => compare(record, Number(select.value)))))
}

async function compare(record, id) {
  const other = await call('nudge.records.get', {id}).catch(error => (say(error), null))
  if (!other) return
  const side = one => el('section', {}, el('h3', {}, `${one.id}: `, text(one.title)), el('p', {class: 'facts'}, one.status, ' · ', since(one.updated_at)), block(one.body || '(no body)'))
  fill(
    detail,
    el('h2', {class: 'title'}, 'Two records'),
    el('div', {class: 'versions'}, side(record), side(other)),
    el('p', {class: 'actions'}, button('Merge the right one into the left', () => merge(record, other), {class: 'strong'}), button('Leave both', drawRecord)),
  )
}

async function merge(record, other) {
  try {
    await change('nudge.records.merge', {into: record.id, ids: [other.id]})
    toast(`Merged ${other.id} into ${record.id}.`, async () => {
      await change('nudge.records.restore', {id: other.id}).catch(say)
      await change('nudge.records.restore', {id: record.id, version: record.version}).catch(say)
      await redraw()
    })
    await redraw()
  } catch (error) {
    say(error)
  }
}

function revision(record, one) {
  const back = async () => {
    try {
      await change('nudge.records.restore', {id: record.id, version: one.version})
      toast(`Record ${record.id} says again what version ${one.version} said.`)
      await redraw()
    } catch (error) {
      say(error)
    }
  }
  return el(
    'li',
    {},
    el('details', {}, el('summary', {}, `version ${one.version}, replaced `, since(one.at), one.by ? [' by ', text(one.by)] : null), el('p', {}, text(one.title)), one.body ? block(one.body) : null, button('Make it this again', back)),
  )
}

async function redraw() {
  shown.form = false
  await loadRecords().catch(say)
  drawRecords()
}

async function remove(record) {
  try {
    await change('nudge.records.delete', {id: record.id})
    toast(`Deleted record ${record.id}.`, async () => {
      await change('nudge.records.restore', {id: record.id}).catch(say)
      await redraw()
    })
    await redraw()
  } catch (error) {
    say(error)
  }
}

function edit(record) {
  shown.form = true
  const input = (name, value, attributes = {}) => Object.assign(el('input', {name, autocomplete: 'off', ...attributes}), {value})
  const select = (name, words, value) => el('select', {name}, words.map(word => el('option', {value: word, selected: word === value}, word)))
  const area = Object.assign(el('textarea', {name: 'body', rows: '12', dir: 'auto'}), {value: record?.body ?? ''})
  const problem = el('div', {class: 'problem', role: 'alert'})
  const cancel = () => {
    shown.form = false
    drawRecord()
  }
  const form = el(
    'form',
    {onsubmit: event => save(event), onkeydown: event => event.key === 'Escape' && cancel(), novalidate: true},
    el('h2', {class: 'title'}, record ? `Edit record ${record.id}` : 'A new record'),
    field('Title, one line', input('title', record?.title ?? '', {maxlength: '300', dir: 'auto'})),
    field('What happened, why, and how it was solved', area),
    el('div', {class: 'pair'}, field('Kind', select('kind', Object.keys(KINDS), record?.kind ?? 'issue')), field('Status', select('status', STATES, record?.status ?? 'open'))),
    field('Project', input('project', record?.project ?? shown.project), record ? null : 'empty: that of the folder above'),
    problem,
    el('p', {class: 'actions'}, el('button', {class: 'strong'}, 'Store'), button('Cancel', cancel)),
  )
  /** What is given besides what the fields say. */
  async function save(event, more = {}) {
    event?.preventDefault()
    const {title, body, kind, status, project: name} = form.elements
    const params = {title: title.value, body: body.value, kind: kind.value, status: status.value, context: here(), ...more}
    if (name.value.trim()) params.project = name.value.trim()
    if (record) Object.assign(params, {id: record.id, if_match_version: more.version ?? record.version})
    delete params.version
    try {
      const done = await change('nudge.records.upsert', params)
      if (done.written === false) return near(done)
      shown.id = done.record.id
      toast(done.created ? `Saved as record ${done.record.id}.` : `Stored record ${done.record.id}.`)
      await redraw()
    } catch (error) {
      if (error.reason === 'E_CONFLICT') return stale()
      if (error.data?.projects_like) return unknown(error)
      fill(problem, el('p', {}, error.message))
    }
  }
  /** A model finds that others say nearly the same. */
  function near({near: found}) {
    const rows = found.map(one => el('li', {}, el('b', {}, `${one.record.id}: `), text(one.record.title), one.record.body ? block(one.record.body) : null))
    fill(problem, el('p', {}, 'Nothing was stored yet: these say nearly the same.'), el('ul', {class: 'plain'}, rows), button('It is another matter: store it', () => save(null, {distinct: true})))
  }
  async function stale() {
    const now = await call('nudge.records.get', {id: record.id}).catch(error => (say(error), null))
    if (!now) return
    fill(problem, el('p', {}, 'Somebody changed it meanwhile. It says now:'), el('p', {}, text(now.title)), block(now.body || '(no body)'), button('Store mine in its place', () => save(null, {version: now.version})))
  }
  function unknown(error) {
    const like = error.data.projects_like
    fill(problem, el('p', {}, 'No project has this name.', like.length ? [' There is ', text(like.join(', ')), '.'] : null), button('Begin it', () => save(null, {create_project: true})))
  }
  fill(detail, form)
  form.elements.title.focus()
}

/** Gives the records that the filters let through as a file. */
async function exportAll() {
  try {
    const all = []
    for (let before; ;) {
      const listed = await call('nudge.records.list', {project: shown.project || '*', kind: shown.kind, status: shown.status, limit: 1000, before, context: here()})
      for (const {id} of listed.records) all.push(await call('nudge.records.get', {id}))
      before = listed.next
      if (!before) break
    }
    const url = URL.createObjectURL(new Blob([`${JSON.stringify({records: all}, null, 2)}\n`], {type: 'application/json'}))
    el('a', {href: url, download: 'nudge-records.json'}).click()
    URL.revokeObjectURL(url)
    toast(`Exported ${plural(all.length, 'record')}.`)
  } catch (error) {
    say(error)
  }
}
