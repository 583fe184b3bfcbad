// Shows the lines that agents' sessions were told, deleted hints, and the last changes.

import {button, byId, code, el, fill, line, since, text, toast} from '/web/dom.js'
import {outcome} from '/web/hints.js'
import {change} from '/web/rpc.js'
import {state} from '/web/store.js'
import {MOMENTS, nameOf, plural, isSecret, valueLine} from '/web/words.js'

let toldDrawn = ''
let deletedDrawn = ''

/** Draws the told lines if any part has changed. `show` opens a hint by its name. */
export function drawTold(show, changed) {
  const note = state.status?.hooks?.note
  const picture = JSON.stringify([note, state.sessions, state.days, state.hints.map(row => nameOf(row.hint))])
  if (picture === toldDrawn) return
  toldDrawn = picture
  const sessions = state.sessions.map(session => sessionPart(session, show))
  const none = el(
    'p', {class: 'empty'}, el('strong', {}, 'This server told no agent anything yet.'), ' Agents ask at the start of a session, with a prompt and after a failure. ',
    code('nudge init'), ' connects those of this machine, ', code('nudge doctor'), ' tries out whether it works.',
  )
  const late = note ? el('p', {class: 'empty', 'data-late': ''}, el('strong', {}, 'Hooks: '), text(note), '.') : null
  fill(byId('view-told'), [late, daysPart(), sessions.length ? sessions : none])
  changed?.()
}

/** Returns the sum of the last days, or null where there are none. */
function daysPart() {
  const sum = name => state.days.reduce((all, day) => all + day[name], 0)
  if (!state.days.length) return null
  const counts = [
    `told ${plural(sum('suggestions'), 'hint')}`,
    `${sum('followed')} run and worked`,
    `${sum('failed')} run and failed`,
    `${plural(sum('late'), 'hook')} too late`,
  ]
  return el('p', {class: 'empty', 'data-days': ''}, el('strong', {}, 'The last 30 days: '), `${counts.join(', ')}.`)
}

function sessionPart(session, show) {
  const {client_session: name, told, cwd, branch, last_active: active} = session
  const counts = [
    `told ${plural(session.suggestions, 'hint')}`,
    session.followed && `${session.followed} run and worked`,
    session.failed && `${session.failed} run and failed`,
  ].filter(Boolean)
  return el(
    'section',
    {class: 'session'},
    el('h2', {}, 'Session ', text(name.length > 60 ? `${name.slice(0, 60)}…` : name)),
    el('p', {class: 'facts'}, cwd && ['in ', text(cwd), branch ? [' on ', text(branch)] : null, ' · '], 'active ', since(active), ` · ${counts.join(', ')}`),
    told.length
      ? el('ol', {class: 'told'}, told.map(one => lineItem(one, show)))
      : el('p', {class: 'empty'}, session.suggestions ? 'Its lines are too old to be remembered.' : 'Nothing fitted what it asked.'),
  )
}

function lineItem(one, show) {
  const id = show(one.name)
  // The line may begin with the name.
  const rest = one.line.startsWith(`${one.name}: `) ? one.line.slice(one.name.length + 2) : one.line
  return el(
    'li',
    {},
    el('p', {class: 'when'}, since(one.at), ` ${MOMENTS[one.event] ?? one.event}`, one.change ? ', a correction' : null),
    el('p', {class: 'line'}, id ? button(text(one.name), id, {class: 'link', 'data-focus': `${one.at}${one.name}`}) : text(one.name), ' ', text(rest)),
    el('p', {class: 'came'}, outcome(one) ?? el('span', {class: 'faint'}, 'not run since')),
  )
}

/** Draws the deleted and replaced hints, and the last changes, if any part has changed. */
export function drawDeleted(refresh) {
  const picture = JSON.stringify([state.deletions, state.changes])
  if (picture === deletedDrawn) return
  deletedDrawn = picture
  const rows = state.deletions.map(deletion => deletionPart(deletion, refresh))
  const none = el('p', {class: 'empty'}, el('strong', {}, 'Nothing was deleted or replaced in this session.'), ' What is can be brought back here.')
  fill(byId('view-deleted'), [rows.length ? el('ul', {class: 'deleted'}, rows) : none, changesPart()])
}

/** Returns the last changes, or null where there are none. */
function changesPart() {
  if (!state.changes.length) return null
  const item = ({at, by, what, source, fields = [], ...names}) =>
    el(
      'li',
      {},
      el('p', {class: 'when'}, since(at), by ? [' by ', text(by)] : null),
      el('p', {class: 'line'}, text(names.key ? nameOf(names) : `${source} ${names.name}`)),
      el('p', {class: 'came'}, what === 'delete' ? 'deleted' : text(fields.join(', '))),
    )
  return el('section', {class: 'session', 'data-changes': ''}, el('h2', {}, 'What was kept or changed in the last week'), el('ol', {class: 'told'}, state.changes.map(item)))
}

function deletionPart(deletion, refresh) {
  const {id, what, at, by, count, hints} = deletion
  const rows = hints.map(hint =>
    el('li', {}, el('b', {}, text(nameOf(hint))), ' ', isSecret(hint) ? el('i', {}, 'secret') : line(valueLine(hint.value), 120)),
  )
  const restore = async () => {
    await bringBack(id)
    await refresh()
  }
  return el(
    'li',
    {},
    el('p', {}, what === 'replaced' ? 'An older value, replaced ' : `${plural(count, 'hint')} deleted `, since(at), by ? [' by ', text(by)] : null),
    el('ul', {class: 'plain'}, rows, count > hints.length ? el('li', {}, `and ${count - hints.length} more`) : null),
    button('Bring back', restore, {'data-focus': `undo-${id}`}),
  )
}

/** Restores a deleted or replaced hint, and shows a message. */
export async function bringBack(id) {
  try {
    const done = await change('nudge.undo', {id})
    const skipped = done.skipped ? `; ${done.skipped} not, stored anew or expired since` : ''
    toast(`Brought back ${plural(done.restored, 'hint')}${skipped}.`)
  } catch (error) {
    toast(error.message)
  }
}
