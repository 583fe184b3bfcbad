// Shows the place of the person: the context of the page's calls.

import {button, byId, el, field, fill, text, visible} from '/web/dom.js'
import {here, setHere} from '/web/rpc.js'
import {state} from '/web/store.js'

const dialog = byId('where')
const SYSTEMS = [['', 'not known'], ['linux', 'Linux'], ['darwin', 'macOS'], ['windows', 'Windows']]

/** Draws the place. */
export function drawPlace() {
  const {cwd, repo, branch} = here()
  const fact = (name, value) => [el('dt', {}, name), el('dd', {}, value ? text(value) : el('i', {}, 'not known'))]
  const folder = cwd?.split('/').filter(Boolean).at(-1)
  document.title = folder ? `${visible(folder)} · Nudge` : 'Nudge'
  fill(byId('here'), fact('Folder', cwd), fact('Repository', repo), fact('Branch', branch))
}

/** Lets the person choose another place; calls `changed` after that. */
export function changePlace(changed) {
  const context = here()
  const control = (name, attributes = {}) => {
    const out = el('input', {name, autocomplete: 'off', spellcheck: 'false', dir: 'auto', ...attributes})
    out.value = context[name] ?? ''
    return out
  }
  const system = el('select', {name: 'os'}, SYSTEMS.map(([value, label]) => el('option', {value, selected: (context.os ?? '') === value}, label)))
  const problem = el('p', {class: 'problem', role: 'alert'})
  const form = el(
    'form',
    {method: 'dialog', onsubmit: event => save(event)},
    el('h2', {id: 'where-title'}, 'Look from another place'),
    field('Folder', control('cwd'), 'the whole path'),
    field('Repository', control('repo'), 'such as org/repo, or file:// and the path of its top'),
    field('Branch', control('branch')),
    field('System', system),
    problem,
    el('p', {class: 'actions'}, el('button', {class: 'strong'}, 'Look from there'), button('Cancel', () => dialog.close())),
    knownPlaces(place => save(null, place)),
  )
  async function save(event, place = null) {
    event?.preventDefault()
    const given = place ?? Object.fromEntries(['cwd', 'repo', 'branch', 'os'].map(name => [name, form.elements[name].value.trim()]))
    // The environment of `nudge ui` is valid only for its own place.
    const next = Object.fromEntries(Object.entries(given).filter(([, value]) => value))
    const moved = next.cwd !== context.cwd
    if (!moved && context.env) next.env = context.env
    setHere(next)
    try {
      await changed()
      dialog.close()
    } catch (error) {
      setHere(context)
      fill(problem, error.message)
    }
  }
  fill(dialog, form)
  dialog.showModal()
}

/** Lists the places of agents' sessions, so that a click chooses one. */
function knownPlaces(choose) {
  const {os} = here()
  const places = new Map()
  for (const {cwd, repo, branch} of state.sessions) {
    if (cwd) places.set(JSON.stringify([cwd, repo, branch]), {cwd, repo, branch, os})
  }
  if (!places.size) return null
  const rows = [...places.values()].slice(0, 8)
  return [
    el('h3', {}, 'Where agents are'),
    el('ul', {class: 'plain places'}, rows.map(place =>
      el('li', {}, button([text(place.cwd), place.branch ? [' on ', text(place.branch)] : null].flat(), () => choose(place), {class: 'link'})),
    )),
  ]
}
