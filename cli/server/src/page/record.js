// Shows the chosen record: its text and earlier texts, two records side by side, and the form.

import {block, button, el, field, fill, hasHidden, since, text, toast, visible} from '/web/dom.js'
import {Over, call, change, here} from '/web/rpc.js'
import {KINDS, PARTS, STATES, shown} from '/web/recorded.js'

/**
 * The element of the record. It fires `stored` after a change here, and `left` when the person goes back to the list.
 */
export const detail = el('article', {class: 'record', 'aria-label': 'The chosen record', tabindex: '-1'})

const tell = what => detail.dispatchEvent(new Event(what))

/** Returns true if a form is open. */
export const isEditingRecord = () => detail.querySelector('form') !== null

/** Returns true if a form or a comparison is open, which must not be replaced without the person's action. */
export const isOpen = () => isEditingRecord() || detail.querySelector('.compared') !== null

function say(error) {
  if (error instanceof Over) throw error
  toast(error.message)
}

let drawn = ''
let looked = 0

/** Empties the element, so that the next drawing draws everything. */
export function forgetRecord() {
  drawn = ''
  looked++
  fill(detail)
}

/** Loads the chosen record or pair, and draws it. */
export async function look(ids) {
  if (ids) return compare(...ids)
  const {id} = shown
  const mine = ++looked
  const record = await call('nudge.records.get', {id, revisions: true})
  if (mine !== looked) return
  drawn = ''
  shown.record = record
  drawRecord()
}

const back = () => button('‹ List', () => tell('left'), {class: 'quiet back', 'data-focus': 'back'})

/** Draws the chosen record if any part of it has changed. */
export function drawRecord() {
  const {record} = shown
  const hit = shown.mode && !shown.pairs ? shown.rows.find(one => one.id === record?.id && one.explain) : null
  const picture = JSON.stringify([record, hit])
  if (picture === drawn) return
  drawn = picture
  if (!record) {
    fill(detail, el('p', {class: 'empty'}, shown.pairs ? 'Choose a pair to see both side by side.' : 'Choose a record to read it.'))
    return
  }
  const {id, title, body, kind, status, project, version, by, origin, created_at: made, updated_at: changed, revisions} = record
  const actions = el(
    'p',
    {class: 'actions'},
    back(),
    button('Edit', () => edit(record), {'data-focus': 'edit', 'aria-keyshortcuts': 'e'}),
    button('Delete', () => remove(record), {'data-focus': 'delete', 'aria-keyshortcuts': 'd'}),
  )
  const facts = [
    ['kind', `${kind}: ${KINDS[kind] ?? ''}`], ['status', status], ['project', text(project)], ['number', `${id}, version ${version}`],
    ['saved', since(made)], ['changed', [since(changed), by ? [' by ', text(by)] : null, ` (${origin})`].flat()],
  ]
  fill(
    detail,
    el('div', {class: 'head'}, el('h2', {class: 'title'}, text(title)), actions),
    body ? block(body, {'aria-label': 'Body'}) : el('p', {class: 'empty'}, 'It has no body.'),
    el('dl', {class: 'facts'}, facts.map(([term, fact]) => [el('dt', {}, term), el('dd', {}, fact)])),
    hit && foundSection(hit),
    others(record),
    revisions.length > 0 && el('section', {}, el('h3', {}, 'What it said before'), el('ul', {class: 'plain'}, revisions.map(one => revision(record, one)))),
  )
}

function foundSection({relevance, explain}) {
  const rows = Object.entries(explain.parts).map(([name, value]) => {
    const [words, most] = PARTS[name] ?? [name, 1]
    const meter = el('meter', {min: 0, max: most, value, 'aria-label': `${words}: ${value}`})
    return el('tr', {}, el('th', {scope: 'row'}, words), el('td', {}, meter), el('td', {class: 'number'}, value.toFixed(2)))
  })
  const words = explain.words.length ? [' It holds ', text(explain.words.join(', ')), `: ${explain.words.length} of ${explain.of} words.`] : ' It holds none of the words.'
  return el(
    'section',
    {},
    el('h3', {}, `Relevance ${relevance.toFixed(2)}`, el('span', {class: 'aside'}, ' why it was found')),
    el('table', {class: 'score'}, el('tbody', {}, rows)),
    explain.of > 0 && el('p', {class: 'note'}, words),
  )
}

/** Returns the records of the list with which it could be merged: those of its project and kind. */
function others(record) {
  const same = shown.rows.filter(one => one.id !== record.id && one.project === record.project && one.kind === record.kind).slice(0, 20)
  if (!same.length) return null
  const select = el('select', {'aria-label': 'Another record of this project and kind'}, same.map(one => el('option', {value: String(one.id)}, `${one.id}: ${visible(one.title.slice(0, 80))}`)))
  const both = button('Compare', () => compare(record.id, Number(select.value)).catch(say))
  return el('section', {}, el('h3', {}, 'Does another one say the same?'), el('p', {class: 'actions'}, select, both))
}

function revision(record, one) {
  const restore = async () => {
    try {
      const {version} = await change('nudge.records.restore', {id: record.id, version: one.version})
      const again = () => change('nudge.records.restore', {id: record.id, version: version - 1}).then(() => tell('stored'), say)
      toast(`Record ${record.id} says again what version ${one.version} said.`, again)
      tell('stored')
    } catch (error) {
      say(error)
    }
  }
  return el(
    'li',
    {},
    el(
      'details',
      {},
      el('summary', {}, `version ${one.version}, replaced `, since(one.at), one.by ? [' by ', text(one.by)] : null, one.why === 'update' ? null : ` (${one.why})`),
      el('p', {class: 'facts'}, `${one.kind}, ${one.status} · `, text(one.project)),
      el('p', {}, text(one.title)),
      one.body ? block(one.body) : null,
      button('Make it this again', restore),
    ),
  )
}

/** Shows two records side by side. */
async function compare(...ids) {
  const mine = ++looked
  const [left, right] = await Promise.all(ids.map(id => call('nudge.records.get', {id})))
  // The person may have chosen another record meanwhile.
  if (mine !== looked) return
  const leave = () => {
    forgetRecord()
    drawRecord()
    tell('left')
  }
  const side = one => el(
    'section',
    {},
    el('h3', {}, `${one.id}: `, text(one.title)),
    el('p', {class: 'facts'}, `${one.kind}, ${one.status} · `, text(one.project), ` · version ${one.version}, `, since(one.updated_at), one.by ? [' by ', text(one.by)] : null),
    one.body ? block(one.body) : el('p', {class: 'empty'}, 'It has no body.'),
  )
  const into = (stays, goes, words) => button(words, () => merge(stays, goes), {class: 'strong', 'data-focus': `into-${stays.id}`})
  document.body.classList.add('reading')
  fill(
    detail,
    el('div', {class: 'head'}, el('h2', {class: 'title'}, 'Two records'), el('p', {class: 'actions'}, back())),
    el('div', {class: 'versions compared'}, side(left), side(right)),
    el('p', {class: 'note'}, 'The one that stays keeps its title; the other is added to its body, and can be brought back.'),
    el('p', {class: 'actions'}, into(left, right, `Keep ${left.id}, add ${right.id} to it`), into(right, left, `Keep ${right.id}, add ${left.id} to it`), button('Leave both', leave)),
  )
}

async function merge(stays, goes) {
  try {
    const now = await Promise.all([stays, goes].map(({id}) => call('nudge.records.get', {id})))
    if (now[0].version !== stays.version || now[1].version !== goes.version) {
      await compare(stays.id, goes.id)
      throw new Error('Somebody changed one of them meanwhile; look at both again.')
    }
    await change('nudge.records.merge', {into: stays.id, ids: [goes.id]})
    toast(`Merged ${goes.id} into ${stays.id}.`, async () => {
      try {
        await change('nudge.records.restore', {id: goes.id})
        await change('nudge.records.restore', {id: stays.id, version: stays.version})
      } catch (error) {
        say(error)
      }
      tell('stored')
    })
    Object.assign(shown, {id: stays.id, pair: null})
    forgetRecord()
    tell('stored')
  } catch (error) {
    say(error)
  }
}

/** Deletes a record, with a button that undoes it; the next record is chosen. */
export async function remove(record) {
  try {
    await change('nudge.records.delete', {id: record.id})
    toast(`Deleted record ${record.id}.`, async () => {
      await change('nudge.records.restore', {id: record.id}).then(() => (shown.id = record.id), say)
      tell('stored')
    })
    const at = shown.rows.findIndex(one => one.id === record.id)
    shown.id = (shown.rows[at + 1] ?? shown.rows[at - 1])?.id ?? null
    document.body.classList.remove('reading')
    forgetRecord()
    tell('stored')
  } catch (error) {
    say(error)
  }
}

/** Returns a text as a field with several lines returns it. */
const seen = words => words.replace(/\r\n?/g, '\n')

/** Opens the form of a record, or of a new one. */
export function edit(record) {
  if (isEditingRecord()) return toast('Store or cancel what you are editing first.')
  document.body.classList.add('reading')
  const form = new RecordForm(record)
  fill(detail, form.element)
  form.element.elements.title.focus()
}

class RecordForm {
  constructor(record) {
    this.record = record
    this.problem = el('div', {class: 'problem', role: 'alert'})
    const input = (name, value, attributes = {}) => Object.assign(el('input', {name, autocomplete: 'off', ...attributes}), {value})
    const select = (name, words, value) => el('select', {name}, words.map(word => el('option', {value: word, selected: word === value}, word)))
    const {title = '', body = '', kind = 'issue', status = 'open', project = shown.project} = record ?? {}
    const area = Object.assign(el('textarea', {name: 'body', rows: '12', dir: 'auto'}), {value: body})
    const isHidden = hasHidden(title) || hasHidden(body.replaceAll('\n', '').replaceAll('\t', ''))
    this.element = el(
      'form',
      {onsubmit: event => this.submit(event), onkeydown: event => this.key(event), novalidate: true},
      el('h2', {class: 'title'}, record ? `Edit record ${record.id}` : 'A new record'),
      field('Title, one line', input('title', title, {dir: 'auto'}), isHidden && 'It holds characters that are not seen.'),
      field('What happened, why, and how it was solved', area),
      el('div', {class: 'pair'}, field('Kind', select('kind', Object.keys(KINDS), kind)), field('Status', select('status', STATES, status))),
      field('Project', input('project', project, {dir: 'auto', spellcheck: 'false'}), record ? null : 'empty: that of the folder above'),
      this.problem,
      el('p', {class: 'actions'}, el('button', {class: 'strong'}, 'Store'), button('Cancel', () => this.close())),
    )
  }

  key(event) {
    if (event.key === 'Escape') {
      event.stopPropagation()
      this.close()
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      this.element.requestSubmit()
    }
  }

  close() {
    forgetRecord()
    drawRecord()
    // A new record has no detail to focus; its form came from the list.
    if (this.record && shown.record) detail.focus({preventScroll: true})
    else tell('left')
  }

  given(name) {
    return this.element.elements[name].value
  }

  /** Returns the params to store; for an existing record only the fields that differ. */
  params() {
    const out = {context: here()}
    for (const name of ['title', 'body', 'kind', 'status', 'project']) {
      const given = name === 'body' ? this.given(name) : this.given(name).trim()
      const was = this.record?.[name]
      // Browsers know only one kind of line end, so a field that was not edited stays as stored.
      if (was !== undefined && given === seen(was).trim() && name !== 'body') continue
      if (was !== undefined && given === seen(was)) continue
      if (name === 'project' && !given) continue
      out[name] = name === 'body' && was?.includes('\r\n') ? given.replaceAll('\n', '\r\n') : given
    }
    return this.record ? {...out, id: this.record.id, if_match_version: this.record.version} : out
  }

  submit(event) {
    event.preventDefault()
    return this.store()
  }

  async store(more = {}) {
    fill(this.problem)
    if (!this.given('title').trim()) return this.refuse('Give a title.')
    try {
      const done = await change('nudge.records.upsert', {...this.params(), ...more})
      if (done.written === false) return this.near(done.near)
      this.done(done)
    } catch (error) {
      await this.explain(error)
    }
  }

  done({record, created, deduplicated, previous_version: before}) {
    shown.id = record.id
    const undo = before && before !== record.version
      ? () => change('nudge.records.restore', {id: record.id, version: before}).then(() => tell('stored'), say)
      : null
    const same = deduplicated ? 'It says what that record said, which was changed: ' : ''
    toast(created ? `Saved as record ${record.id}.` : `${same}Stored record ${record.id}, version ${record.version}.`, undo)
    forgetRecord()
    tell('stored')
    detail.focus({preventScroll: true})
  }

  refuse(words, ...more) {
    fill(this.problem, el('p', {}, words), more)
    this.problem.scrollIntoView({block: 'nearest'})
  }

  async explain(error) {
    if (error instanceof Over) throw error
    if (error.reason === 'E_CONFLICT' && this.record) return this.stale()
    if (error.reason === 'E_NOT_FOUND' && this.record && !error.data.merged_into) return this.deleted()
    if (error.data?.projects_like) {
      const like = error.data.projects_like
      return this.refuse(
        ['No project has this name.', like.length ? [' There is ', text(like.join(', ')), '.'] : null],
        el('p', {class: 'actions'}, button('Begin this project', () => this.store({create_project: true}))),
      )
    }
    this.refuse(error.message)
  }

  /** Shows a change that was made meanwhile beside the content of the form. */
  async stale() {
    const now = await call('nudge.records.get', {id: this.record.id, revisions: true}).catch(error => (say(error), null))
    if (!now) return
    const mine = () => {
      // All fields are sent now, because the whole form must be stored.
      const {title, body, kind, status, project} = Object.fromEntries(['title', 'body', 'kind', 'status', 'project'].map(name => [name, this.given(name)]))
      return this.store({title: title.trim(), body, kind, status, ...(project.trim() ? {project: project.trim()} : {}), if_match_version: now.version})
    }
    const theirs = () => {
      shown.record = now
      forgetRecord()
      edit(now)
    }
    this.refuse(
      'Somebody changed it meanwhile. Nothing is stored yet.',
      el(
        'div',
        {class: 'versions'},
        el('section', {}, el('h3', {}, `Stored now, version ${now.version}`), el('p', {class: 'facts'}, since(now.updated_at), now.by ? [' by ', text(now.by)] : null, ` · ${now.kind}, ${now.status}`), el('p', {}, text(now.title)), block(now.body)),
        el('section', {}, el('h3', {}, 'Yours'), el('p', {class: 'facts'}, `made from version ${this.record.version} · ${this.given('kind')}, ${this.given('status')}`), el('p', {}, text(this.given('title'))), block(this.given('body'))),
      ),
      el('p', {class: 'actions'}, button('Store mine over it', mine, {class: 'strong'}), button('Take what is stored', theirs)),
    )
  }

  deleted() {
    const back = async () => {
      try {
        this.record = {...(await change('nudge.records.restore', {id: this.record.id})), revisions: []}
        await this.store()
      } catch (error) {
        await this.explain(error)
      }
    }
    this.refuse('Somebody deleted it meanwhile.', el('p', {class: 'actions'}, button('Bring it back, and store mine', back), button('Leave it deleted', () => this.close())))
  }

  /** Shows records that a model finds nearly equal. */
  near(found) {
    const rows = found.map(({record, distance}) => el(
      'li',
      {},
      el('p', {}, el('b', {}, `${record.id}: `), text(record.title), el('span', {class: 'faint'}, ` ${distance.toFixed(2)} apart`)),
      record.body ? block(record.body) : null,
      this.record ? null : button(`Change ${record.id} to this`, () => this.store({id: record.id, if_match_version: record.version})),
    ))
    this.refuse('Nothing was stored yet: these say nearly the same.', el('ul', {class: 'plain'}, rows), el('p', {class: 'actions'}, button('It is another matter: store it', () => this.store({distinct: true}))))
  }
}
