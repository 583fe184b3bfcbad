// Changes, keeps, deletes and stores hints.

import {block, button, byId, el, field, fill, hasHidden, since, text, toast} from '/web/dom.js'
import {drawDetail, forget, staysInForm} from '/web/hints.js'
import {call, change, here, Over} from '/web/rpc.js'
import {current, load, state} from '/web/store.js'
import {bringBack} from '/web/told.js'
import {author, idOf, isSecret, nameOf, scopeWords, valueText} from '/web/words.js'

const detail = byId('detail')

/** Returns the server's sentence, unless the page has a better one. */
function say(error) {
  if (error instanceof Over) throw error
  toast(error.message)
}

/** Shows the current hint. */
async function redraw() {
  await load()
  window.dispatchEvent(new Event('nudge-loaded'))
}

/** Returns the id with which `undo` brings the last deletion or replacement back. */
async function undoOf(what, hint) {
  const {deletions} = await call('nudge.deletions')
  const same = one => one.what === what && one.hints.some(gone => idOf(gone) === idOf(hint))
  return deletions.find(same)?.id
}

const undo = id => (id === undefined ? null : async () => {
  await bringBack(id)
  await redraw()
})

/** Deletes a hint, with a button that undoes it. */
export async function remove(hint) {
  const {component, key, variant = ''} = hint
  try {
    await change('nudge.delete_hint', {component, key, variant})
    toast(`Deleted ${nameOf(hint)}.`, undo(await undoOf('deleted', hint)))
    document.body.classList.remove('reading')
    await redraw()
  } catch (error) {
    say(error)
  }
}

/** Returns the params that store a hint unchanged, except for its meta data. */
function asStored(hint, meta) {
  const {component, key, variant = '', value, version} = hint
  const {scope, ...rest} = {...hint.meta, ...meta}
  return {component, key, variant, value, meta: rest, if_match_version: version, allow_secret: true}
}

/** Makes a hint last for its own time. Its text is stored already, so the guard need not check it again. */
export async function keep(hint, ttl) {
  try {
    await change('nudge.set_hint', asStored(hint, {ttl}))
    toast(ttl === 'session' ? `${nameOf(hint)} ends with this session.` : `${nameOf(hint)} is kept for a year.`, async () => {
      const now = await current(hint)
      if (now) await change('nudge.set_hint', asStored(now, {ttl: hint.meta.ttl})).catch(say)
      await redraw()
    })
    await redraw()
  } catch (error) {
    say(error.reason === 'E_CONFLICT' ? new Error('Somebody changed it meanwhile; look at it again.') : error)
    await redraw()
  }
}

const LISTS = {repo: 'Repositories', cwd_glob: 'Folders, as globs', branch: 'Branches, as globs'}
const SYSTEMS = [['linux', 'Linux'], ['darwin', 'macOS'], ['windows', 'Windows']]

/** Opens the form of a hint. */
export const edit = hint => show(hint)

/** Opens an empty form. */
export const create = () => show(null)

function show(hint) {
  if (staysInForm()) return
  open(hint)
}

function open(hint) {
  forget()
  document.body.classList.add('reading')
  const form = new HintForm(hint)
  fill(detail, form.element)
  form.element.querySelector(hint ? '[name=text]' : '[name=component]').focus()
}

function close() {
  fill(detail)
  forget()
  drawDetail()
  detail.focus()
}

function area(name, value, rows = 2) {
  const out = el('textarea', {name, rows: String(rows), spellcheck: 'false', dir: 'auto'})
  out.value = value
  return out
}

function input(name, value, attributes = {}) {
  const out = el('input', {name, autocomplete: 'off', spellcheck: 'false', ...attributes})
  out.value = value ?? ''
  return out
}

/** Returns a text as a field with several lines returns it. */
const seen = text => text.replace(/\r\n?/g, '\n')

const lines = value => value.split('\n').map(one => one.trim()).filter(Boolean)

class HintForm {
  /** The form of a hint, or of a new hint. */
  constructor(hint) {
    this.hint = hint
    /** The hint from which the fields were filled. */
    this.before = hint
    this.problem = el('div', {class: 'problem', role: 'alert'})
    const meta = hint?.meta ?? {}
    const value = hint && !isSecret(hint) ? valueText(hint.value) : ''
    /** The initial texts of fields with several lines: browsers know only one kind of line end. */
    this.untouched = {text: seen(value), reason: seen(meta.reason ?? '')}
    this.element = el(
      'form',
      {onsubmit: event => this.submit(event), onkeydown: event => this.key(event), novalidate: true},
      el('h2', {class: 'title'}, hint ? ['Edit ', text(nameOf(hint))] : 'A new hint'),
      hint ? null : [field('Component', input('component', ''), 'a service, module or folder'), field('Key', input('key', ''), 'such as build')],
      field('Value', area('text', value, Math.min(14, Math.max(3, value.split('\n').length + 1))), this.valueNote(value)),
      field('Why it is worth knowing', area('reason', meta.reason ?? '')),
      field('Tags, with commas between', input('tags', (meta.tags ?? []).join(', '))),
      el(
        'div',
        {class: 'pair'},
        field('Priority, 1 to 10', input('priority', meta.priority, {inputmode: 'numeric'})),
        field('Confidence, 0 to 1', input('confidence', meta.confidence, {inputmode: 'decimal'})),
      ),
      this.ttlField(meta.ttl),
      this.scopeFields(meta.scope ?? {}),
      this.problem,
      el('p', {class: 'actions'}, el('button', {class: 'strong'}, 'Store'), button('Cancel', close)),
    )
  }

  valueNote(value) {
    if (this.hint && isSecret(this.hint)) return 'It is a secret and not shown here. To change anything, give it anew.'
    if (hasHidden(value.replaceAll('\n', '').replaceAll('\t', ''))) return 'It holds characters that are not seen.'
    return this.hint?.value?.type === 'json' ? 'JSON' : null
  }

  ttlField(ttl = 'session') {
    const keeps = state.status?.keeping?.on
    const note = keeps
      ? '“session”, or a duration such as PT2H, P30D; with a duration it is kept for next time'
      : '“session”, or a duration such as PT2H, P30D; this session keeps nothing for next time'
    return field('Lasts', input('ttl', this.hint ? ttl : keeps ? 'P365D' : 'session'), note)
  }

  scopeFields(scope) {
    const named = {...scope}
    if (!this.hint && here().repo) named.repo = [here().repo]
    const env = scopeWords({env_required: scope.env_required, env_match: scope.env_match})
    const hasEnv = scope.env_required || scope.env_match
    return el(
      'fieldset',
      {},
      el('legend', {}, 'Where it holds'),
      el('small', {}, 'All that is given must be so; where nothing is given, it holds everywhere.'),
      Object.entries(LISTS).map(([name, label]) => field(`${label}, one on each line`, area(name, (named[name] ?? []).join('\n')))),
      el(
        'div',
        {class: 'checks', role: 'group', 'aria-label': 'Systems'},
        SYSTEMS.map(([name, label]) =>
          el('label', {}, el('input', {type: 'checkbox', name: `os-${name}`, checked: scope.os?.includes(name) ?? false}), label),
        ),
      ),
      hasEnv && el('p', {class: 'note'}, 'And ', text(env.join(', ')), ', as before.'),
    )
  }

  key(event) {
    if (event.key === 'Escape') {
      event.stopPropagation()
      close()
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      this.element.requestSubmit()
    }
  }

  /** Returns the content of a field. */
  given(name) {
    return this.element.elements[name].value
  }

  value() {
    const old = this.hint?.value
    const text = this.given('text')
    if (old !== undefined && text && text === this.untouched.text) return this.before.value
    const given = old !== undefined && valueText(old).includes('\r\n') ? text.replaceAll('\n', '\r\n') : text
    switch (old?.type) {
      case 'command': return {...old, cmd: given}
      case 'path': return {...old, abs: given}
      case 'template': return {...old, body: given}
      case 'json': return {type: 'json', data: JSON.parse(given)}
      default: return given
    }
  }

  meta() {
    const {scope, reason: _, tags, priority, confidence, ttl, ...rest} = this.hint?.meta ?? {source: 'user'}
    const said = this.given('reason') === this.untouched.reason ? this.before?.meta.reason : this.given('reason').trim()
    const number = name => (this.given(name).trim() === '' ? null : Number(this.given(name)))
    return {
      ...rest,
      reason: said || null,
      tags: this.given('tags').split(',').map(tag => tag.trim()).filter(Boolean),
      priority: number('priority'),
      confidence: number('confidence'),
      ttl: this.given('ttl').trim() || null,
    }
  }

  scope() {
    const {env_required, env_match} = this.hint?.meta.scope ?? {}
    const out = {env_required, env_match}
    for (const name of Object.keys(LISTS)) out[name] = lines(this.given(name))
    out.os = SYSTEMS.map(([name]) => name).filter(name => this.element.elements[`os-${name}`].checked)
    return out
  }

  /** Returns true if the scope in the form differs from the hint's. */
  isMoved() {
    const plain = scope => JSON.stringify([...Object.keys(LISTS), 'os'].map(name => [...(scope[name] ?? [])].sort()))
    return plain(this.scope()) !== plain(this.hint.meta.scope ?? {})
  }

  async submit(event) {
    event.preventDefault()
    fill(this.problem)
    let value
    try {
      value = this.value()
    } catch (error) {
      return this.refuse(`The value is not JSON: ${error.message}.`)
    }
    if (!this.given('text')) return this.refuse('Give a value.')
    for (const name of ['priority', 'confidence']) {
      if (Number.isNaN(Number(this.given(name)))) return this.refuse(`The ${name} is not a number.`)
    }
    try {
      await this.store(value)
    } catch (error) {
      await this.explain(error)
    }
  }

  /** Stores the hint if it has not changed since the form was opened. */
  async store(value, version = this.hint?.version ?? 0) {
    const allow_secret = this.allow?.checked ?? false
    const meta = this.meta()
    if (!this.hint) {
      const named = {component: this.given('component'), key: this.given('key')}
      return this.done(await change('nudge.set_hint', {...named, value, meta: {...meta, scope: this.scope()}, if_match_version: 0, allow_secret}))
    }
    const {component, key, variant = '', created_at: since} = this.hint
    const now = await current(this.hint)
    // A hint that was deleted and stored again starts with version 1.
    if (!now || now.created_at !== since || now.version !== version) return this.conflict(now)
    if (!this.isMoved()) {
      return this.done(await change('nudge.set_hint', {component, key, variant, value, meta, if_match_version: version, allow_secret}))
    }
    const moved = await change('nudge.set_hint', {component, key, value, meta: {...meta, scope: this.scope()}, if_match_version: 0, allow_secret})
    await change('nudge.delete_hint', {component, key, variant})
    return this.done(moved)
  }

  async done({hint, previous}) {
    state.chosen = idOf(hint)
    const back = previous ? undo(await undoOf('replaced', hint)) : null
    toast(`Stored ${nameOf(hint)}, version ${hint.version}.`, back)
    close()
    await redraw()
  }

  refuse(words, ...more) {
    fill(this.problem, el('p', {}, words), more)
    this.problem.scrollIntoView({block: 'nearest'})
  }

  async explain(error) {
    if (error.reason === 'E_SECRET_REJECTED') {
      this.allow = el('input', {type: 'checkbox'})
      return this.refuse(error.message, el('label', {class: 'check'}, this.allow, 'It is a false alarm: store it all the same'))
    }
    if (error.reason === 'E_CONFLICT') {
      const moved = !this.hint || this.isMoved()
      if (moved) return this.refuse('There is a hint with this name and scope already; edit that one.')
      return this.conflict(await current(this.hint))
    }
    if (error instanceof Over) throw error
    this.refuse(error.message)
  }

  /** Shows a change that was made meanwhile beside the content of the form. */
  conflict(now) {
    if (!now) {
      this.refuse('Somebody deleted it meanwhile.', el('p', {class: 'actions'}, button('Store it anew', () => this.anew()), button('Leave it deleted', close)))
      return
    }
    const mine = () => {
      this.hint = now
      this.element.requestSubmit()
    }
    this.refuse(
      'Somebody changed it meanwhile. Nothing is stored yet.',
      el(
        'div',
        {class: 'versions'},
        el('section', {}, el('h3', {}, `Stored now, version ${now.version}`), el('p', {class: 'facts'}, since(now.updated_at), ' by ', text(author(now.meta))),
          isSecret(now) ? el('p', {}, 'a secret') : block(valueText(now.value)), now.meta.reason && el('p', {class: 'reason'}, text(now.meta.reason))),
        el('section', {}, el('h3', {}, 'Yours'), el('p', {class: 'facts'}, `made from version ${this.hint.version}`), block(this.given('text')),
          this.given('reason') && el('p', {class: 'reason'}, text(this.given('reason')))),
      ),
      el('p', {class: 'actions'}, button('Store mine over it', mine, {class: 'strong'}), button('Take what is stored', () => open(now))),
    )
  }

  async anew() {
    const {component, key} = this.hint
    try {
      this.done(await change('nudge.set_hint', {component, key, value: this.value(), meta: {...this.meta(), scope: this.scope()}, if_match_version: 0}))
    } catch (error) {
      await this.explain(error)
    }
  }
}
