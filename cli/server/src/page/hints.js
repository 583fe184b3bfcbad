// Shows the list of hints, and the chosen one.

import {block, button, byId, code, el, fill, line, since, text, toast, visible} from '/web/dom.js'
import {edit, keep, remove} from '/web/edit.js'
import {call, here} from '/web/rpc.js'
import {beyond, rowOf, state} from '/web/store.js'
import {
  MOMENTS, PARTS, author, exactly, failureWords, idOf, isSecret, keeping, nameOf, plural, scopeWords, useWords, valueKind, valueLine, valueText,
} from '/web/words.js'

const list = byId('list')
const detail = byId('detail')

/** Returns true if a form is in the place of the chosen hint. */
export const isEditing = () => detail.querySelector('form') !== null

let drawn = ''
let explained = ''

/** Draws the list if any part of it has changed. */
export function drawList() {
  const groups = state.found
    ? [['What this brings to mind here', state.found.rows], ['Others with these words', state.found.others]]
    : [['Fits here, best first', fitting()], ['Elsewhere', state.hints.filter(row => !row.match_explain.matched)]]
  const ids = groups.flatMap(([, rows]) => rows.map(row => idOf(row.hint)))
  if (!ids.includes(state.chosen)) {
    state.chosen = ids[0] ?? null
  }
  fill(byId('found'), foundWords(ids.length))
  const picture = JSON.stringify([groups, state.chosen, state.status?.keeping])
  if (picture === drawn) return
  drawn = picture
  list.hidden = ids.length === 0
  fill(list, groups.filter(([, rows]) => rows.length).map(group))
}

const fitting = () => state.hints.filter(row => row.match_explain.matched)

function foundWords(count) {
  if (state.found) {
    return count
      ? plural(count, 'hint')
      : ['Nothing stored has these words. ', button('Leave the search', () => byId('search').dispatchEvent(new Event('leave')), {class: 'link'})]
  }
  const more = beyond()
  if (more) return `${plural(more, 'more hint')} rank lower and are not shown; a search finds them.`
  if (!state.hints.length) {
    return [
      el('strong', {}, 'Nothing is stored yet.'),
      ' Agents store what took them effort to find. You can, too: with “New hint”, or in a terminal: ',
      code('nudge set api build "make api"'),
    ]
  }
  return fitting().length ? '' : 'Nothing that is stored fits here; each says why not. “Change” looks from another place.'
}

function group([title, rows]) {
  const id = `group-${title.length}`
  return el(
    'div',
    {role: 'group', 'aria-labelledby': id},
    el('h2', {id}, title, el('span', {class: 'count'}, ` ${rows.length}`)),
    rows.map(option),
  )
}

function option(row) {
  const {hint, match_explain: explain, why} = row
  const id = idOf(hint)
  const chosen = id === state.chosen
  const keeps = keeping(hint, state.status)
  const chips = [
    isSecret(hint) && ['secret', ''],
    (hint.failure_count ?? 0) >= 3 && ['keeps failing', 'bad'],
    [keeps.short, keeps.kept ? 'good' : ''],
  ].filter(Boolean)
  const place = explain.matched ? scopeWords(hint.meta.scope).join(', ') : explain.reasons[0]
  return el(
    'div',
    {
      role: 'option', class: explain.matched ? 'row' : 'row away', tabindex: chosen ? '0' : '-1', 'aria-selected': String(chosen),
      'data-focus': id, onclick: () => choose(id, true),
    },
    el('p', {class: 'name'}, text(hint.component), '/', el('b', {}, text(hint.key))),
    el('p', {class: 'value'}, isSecret(hint) ? el('i', {}, 'secret') : line(valueLine(hint.value))),
    el('p', {class: 'facts'}, line(why ?? place, 110)),
    el('p', {class: 'chips'}, chips.map(([words, kind]) => el('span', {class: `chip ${kind}`}, words)), since(hint.updated_at)),
  )
}

const options = () => [...list.querySelectorAll('[role=option]')]

/** Returns true if a form is open, and says that it must be closed first. */
export function staysInForm() {
  if (isEditing()) toast('Store or cancel what you are editing first.')
  return isEditing()
}

/** Chooses a hint; `read` moves the focus to it if list and hint are not side by side. */
export function choose(id, read = false) {
  if (staysInForm()) return
  state.chosen = id
  for (const one of options()) {
    const chosen = one.dataset.focus === id
    one.setAttribute('aria-selected', String(chosen))
    one.tabIndex = chosen ? 0 : -1
    if (chosen) {
      one.focus({preventScroll: true})
      one.scrollIntoView({block: 'nearest'})
    }
  }
  drawn = ''
  if (read) document.body.classList.add('reading')
  drawDetail()
}

/** Moves the choice by so many hints. */
export function step(by) {
  const all = options()
  const at = all.findIndex(one => one.dataset.focus === state.chosen)
  const next = all[Math.min(all.length - 1, Math.max(0, at + by))]
  if (next) choose(next.dataset.focus)
}

/** Moves the focus to the chosen hint. */
export function read() {
  document.body.classList.add('reading')
  detail.focus()
}

/** Moves the focus back to the list. */
export function back() {
  document.body.classList.remove('reading')
  options().find(one => one.dataset.focus === state.chosen)?.focus()
}

/** Draws the chosen hint if any part of it has changed, unless a form is open. */
export async function drawDetail() {
  if (isEditing()) return
  const row = state.chosen === null ? null : rowOf(state.chosen)
  if (!row) {
    explained = ''
    // This also runs while another view is open.
    if (state.view === 'hints') document.body.classList.remove('reading')
    fill(detail)
    return
  }
  const {component, key} = row.hint
  const why = await call('nudge.why', {component, key, context: here()})
  if (isEditing() || state.chosen !== idOf(row.hint)) return
  const variant = why.variants.find(one => idOf(one.hint) === state.chosen)
  if (!variant) return
  const told = toldOf(variant.hint)
  const picture = JSON.stringify([variant, why.verdict, told, state.status?.keeping])
  if (picture === explained) return
  explained = picture
  const first = idOf(why.variants[0].hint) === state.chosen
  fill(detail, parts(variant, why, first, told))
}

/** Marks the detail as replaced, so that the next drawing draws everything. */
export function forget() {
  explained = ''
  fill(detail)
}

function toldOf(hint) {
  const name = visible(nameOf(hint))
  const lines = state.sessions.flatMap(session =>
    session.told.filter(one => one.source === 'hints' && one.name === name).map(one => ({session: session.client_session, ...one})),
  )
  return lines.slice(0, 5)
}

function parts(variant, why, first, told) {
  const {hint, conditions, match_explain: explain} = variant
  const keeps = keeping(hint, state.status)
  const actions = el(
    'p',
    {class: 'actions'},
    button('‹ List', back, {class: 'quiet back', 'data-focus': 'back'}),
    button('Edit', () => edit(hint), {'data-focus': 'edit', 'aria-keyshortcuts': 'e'}),
    !isSecret(hint) && keepButton(hint, keeps),
    button('Delete', () => remove(hint), {'data-focus': 'delete', 'aria-keyshortcuts': 'd'}),
  )
  return [
    el('div', {class: 'head'}, el('h2', {class: 'title'}, text(hint.component), '/', el('b', {}, text(hint.key))), actions),
    isSecret(hint)
      ? el('p', {class: 'secret'}, 'The value is a secret and is not shown here; ', code(`nudge get ${hint.component} ${hint.key} --reveal`), ' shows it.')
      : block(valueText(hint.value), {'aria-label': 'Value'}),
    hint.meta.reason && el('p', {class: 'reason'}, text(hint.meta.reason)),
    fitSection(conditions, explain, why, first),
    scoreSection(explain),
    aboutSection(hint, keeps),
    toldSection(told),
  ]
}

/** Makes the button that changes how long a hint lasts, if the session keeps hints. */
function keepButton(hint, keeps) {
  if (keeps.kept) return button('Only this session', () => keep(hint, 'session'), {'data-focus': 'keep'})
  if (state.status?.keeping?.on) return button('Keep', () => keep(hint, 'P365D'), {'data-focus': 'keep'})
  return null
}

function fitSection(conditions, explain, why, first) {
  const verdict = explain.matched && !first ? why.verdict.replace('The first is chosen', 'Another variant of this key is told instead') : null
  const rows = conditions.map(({met, reason}) =>
    el('li', {class: met ? 'met' : 'unmet'}, el('span', {class: 'unseen'}, met ? 'met: ' : 'not met: '), text(reason)),
  )
  return el(
    'section',
    {class: explain.matched ? 'fits' : 'fits-not'},
    el('h3', {}, explain.matched ? 'It fits here' : 'It does not fit here'),
    rows.length ? el('ul', {class: 'conditions'}, rows) : el('p', {}, 'It has no scope: it holds everywhere.'),
    verdict && el('p', {}, text(verdict)),
  )
}

function scoreSection(explain) {
  const rows = Object.entries(explain.parts).map(([name, value]) => {
    const [words, most] = PARTS[name] ?? [name, 1]
    const meter = el('meter', {min: 0, max: most, value, 'aria-label': `${words}: ${value} of ${most}`})
    return el('tr', {}, el('th', {scope: 'row'}, words), el('td', {}, meter), el('td', {class: 'number'}, value.toFixed(2)), el('td', {class: 'number most'}, `of ${most.toFixed(2)}`))
  })
  return el(
    'section',
    {},
    el('h3', {}, `Score ${explain.score.toFixed(2)}`, el('span', {class: 'aside'}, ' what ranks it among those that fit')),
    el('table', {class: 'score'}, el('tbody', {}, rows)),
  )
}

function fact(name, ...values) {
  return values.some(Boolean) ? [el('dt', {}, name), el('dd', {}, values)] : []
}

function aboutSection(hint, keeps) {
  const {meta} = hint
  const failed = failureWords(hint)
  const scope = scopeWords(meta.scope)
  return el(
    'section',
    {},
    el('h3', {}, 'About it'),
    el(
      'dl',
      {class: 'facts'},
      fact('holds', el('ul', {class: 'plain'}, scope.map(words => el('li', {}, text(words))))),
      fact('lasts', keeps.long),
      fact('use', useWords(hint), hint.last_used_at ? [', last ', since(hint.last_used_at)] : null),
      fact('failures', failed, failed && hint.last_failed_at ? [', last ', since(hint.last_failed_at)] : null),
      fact('stored', since(hint.updated_at), ` by `, text(author(meta)), `, version ${hint.version}`),
      hint.version > 1 ? fact('first stored', exactly(hint.created_at)) : [],
      fact('kind', text(valueKind(hint.value))),
      fact('priority', meta.priority ? `${meta.priority} of 10` : null),
      fact('confidence', meta.confidence === undefined ? null : `${meta.confidence} of 1`),
      meta.tags ? fact('tags', meta.tags.map(tag => el('span', {class: 'chip'}, text(tag)))) : [],
    ),
  )
}

function toldSection(told) {
  return el(
    'section',
    {},
    el('h3', {}, 'Told to agents'),
    told.length
      ? el('ul', {class: 'plain'}, told.map(one =>
        el('li', {}, since(one.at), ` ${MOMENTS[one.event] ?? one.event}, to the session `, text(one.session.slice(0, 40)), outcome(one)),
      ))
      : el('p', {}, 'No agent was told of it lately.'),
  )
}

/** Returns words for the outcome of a told line. */
export function outcome({outcome: came}) {
  if (!came) return null
  return el('span', {class: came.ok ? 'chip good' : 'chip bad'}, came.ok ? 'run, and it worked ' : 'run, and it failed ', since(came.at))
}
