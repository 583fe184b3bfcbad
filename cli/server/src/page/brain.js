// Shows the brain: the user's own notes, their relations, and why a question finds them.

import {block, el, fill, line, since, text, toast} from '/web/dom.js'
import {explorer} from '/web/explore.js'
import {linkGraph} from '/web/graph.js'
import {Over, call, here} from '/web/rpc.js'
import {plural} from '/web/words.js'

/** The most units in the list; a search finds the others. */
const MOST = 1000
const FOUND = 20

const shown = {
  /** The answer of nudge.brain.status; null without a brain. */
  status: null,
  /** The reason why there is no brain. */
  problem: '',
  /** The faults of its files. */
  problems: [],
  units: [],
  query: '',
  /** The answer to the search. */
  found: null,
  /** The id of the chosen unit, and its data. */
  chosen: null,
  told: null,
}

const explore = explorer({view: 'view-brain', find: 'Ask the brain', listName: 'Units', chosenName: 'The chosen unit', search: ask, failed: say})
const {stands, list, detail} = explore

/** Returns the number of units, for the tab. */
export const countBrain = () => shown.status?.units || ''

function say(error) {
  if (error instanceof Over) throw error
  toast(error.message)
}

let asked = 0

/** Loads the status of the brain and the open unit. A place without a brain is no error. */
export async function loadBrain() {
  const mine = ++asked
  const context = here()
  try {
    const status = await call('nudge.brain.status', {context})
    const [{problems}, {units}, found, told] = await Promise.all([
      call('nudge.brain.check', {context}),
      call('nudge.brain.list', {limit: MOST, context}),
      search(context),
      look(context),
    ])
    if (mine === asked) Object.assign(shown, {status, problems, units, found, told, problem: ''})
  } catch (error) {
    if (error instanceof Over || !error.reason) throw error
    if (mine === asked) Object.assign(shown, {status: null, problems: [], units: [], found: null, told: null, problem: error.reason === 'E_UNKNOWN_METHOD' ? 'This server has no brain.' : error.message})
  }
}

const search = context => (shown.query.trim() ? call('nudge.brain.context', {task_description: shown.query, limit: FOUND, explain: true, context}) : null)

async function look(context) {
  if (!shown.chosen) return null
  return call('nudge.brain.get', {id: shown.chosen, context}).catch(error => {
    if (error instanceof Over || !error.reason) throw error
    return {problem: error.message}
  })
}

let drawn = ''

/** Draws the view if any part of it has changed. */
export function drawBrain() {
  explore.begin()
  const picture = JSON.stringify(shown)
  if (picture === drawn) return
  drawn = picture
  fill(stands, shown.status ? standing(shown.status) : [el('strong', {}, 'No brain is known here.'), ' ', text(shown.problem)])
  fill(list, shown.status && (shown.found ? answer(shown.found) : shown.units.map(unit)))
  fill(detail, shown.told ? told(shown.told) : el('p', {class: 'empty'}, 'Choose a unit, or ask something.'))
}

function standing({root, units, relations, vectors, chunks, stale}) {
  const meaning = !vectors ? 'found by words alone' : vectors < chunks ? `${plural(chunks - vectors, 'section')} found by words alone` : 'found by meaning'
  return [
    el('p', {}, `${plural(units, 'unit')}, ${plural(relations, 'relation')} in `, text(root)),
    el('p', {class: 'faint'}, meaning, stale && ' · files have changed that are still read'),
    units > MOST && el('p', {class: 'faint'}, `The first ${MOST} are listed; ask for the others.`),
    shown.problems.length > 0 && el('details', {}, el('summary', {}, plural(shown.problems.length, 'problem')), el('ul', {class: 'skipped'}, shown.problems.map(problem))),
  ]
}

const problem = ({path, text: words}) => el('li', {}, text(path), ' ', text(words))

const facts = ({type, domain, path}) => el('p', {class: 'facts'}, text([type, domain, path].filter(Boolean).join(' · ')))

function unit(one) {
  return explore.row(`unit-${one.id}`, one.id === shown.chosen, () => choose(one.id), el('p', {class: 'name'}, line(one.title, 140)), facts(one))
}

function answer({units, related, weak, degraded}) {
  const best = units.map(one => explore.row(
    `unit-${one.id}`, one.id === shown.chosen, () => choose(one.id),
    el('p', {class: 'name'}, line(one.title, 140)),
    one.sections.length > 0 && el('p', {class: 'value'}, line(one.sections[0].text, 160)),
    facts(one),
    el('p', {class: 'facts'}, `relevance ${one.score.toFixed(2)}, `, line(one.why, 200), parts(one.explain)),
  ))
  const by = related.map(one => explore.row(
    `related-${one.id}`, one.id === shown.chosen, () => choose(one.id),
    el('p', {class: 'name'}, line(one.title, 140)),
    el('p', {class: 'facts'}, text(`${one.relation.replaceAll('_', ' ')}, by ${one.via}`)),
  ))
  return [
    weak && units.length > 0 && el('p', {class: 'notice'}, 'Nothing fits well.'),
    degraded.map(words => el('p', {class: 'faint'}, text(words))),
    units.length ? best : el('p', {class: 'empty'}, 'No unit is like that.'),
    by,
  ]
}

/** Shows the addends of a relevance. */
const parts = explain => explain && text(` (${Object.entries(explain.parts).map(([name, part]) => `${name} ${part.toFixed(2)}`).join(' + ')})`)

/** Makes an edge of the graph from a relation. */
const edge = ({id, title, relation}) => ({id, name: title, title: `${title}: ${relation.replaceAll('_', ' ')}`})

function told({problem: words, unit: one, frontmatter, body, related, backlinks}) {
  if (words) return [explore.toList(), el('p', {class: 'notice'}, text(words))]
  return [
    explore.toList(),
    el('h2', {}, text(one.title)),
    facts(one),
    one.confidence !== undefined && el('p', {class: 'facts'}, `confidence ${one.confidence}`),
    one.tags.length > 0 && el('p', {class: 'chips'}, one.tags.map(tag => el('span', {class: 'chip'}, text(tag)))),
    Number.isFinite(Date.parse(frontmatter?.last_modified)) && el('p', {class: 'facts'}, since(frontmatter.last_modified)),
    el('h3', {}, 'Relations'),
    related.length + backlinks.length ? linkGraph(one.title, backlinks, related, {of: edge, choose: id => choose(id).catch(say)}) : el('p', {class: 'faint'}, 'None.'),
    block(body, {'aria-label': 'Text'}),
  ]
}

async function choose(id) {
  shown.chosen = id
  shown.told = await look(here())
  drawBrain()
  explore.read()
}

async function ask(query) {
  shown.query = query
  const mine = ++asked
  const answered = await search(here())
  if (mine !== asked) return
  shown.found = answered
  drawBrain()
}

/** The keys of this view. */
export const brainKeys = explore.keys
