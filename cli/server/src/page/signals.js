// Shows the agents at the place of the person: their last signals, and open questions.

import {byId, code, el, fill, line, since, text} from '/web/dom.js'
import {call, here} from '/web/rpc.js'
import {state} from '/web/store.js'

let drawn = ''

/** Loads the agents. A place without agents or with unreadable files is no error. */
export async function loadSignals() {
  state.agents = []
  state.signalsProblem = ''
  try {
    state.agents = (await call('nudge.signals.list', {context: here()})).agents
  } catch (error) {
    // Without a folder there is no state directory.
    if (error.reason === 'E_INVALID' && !here().cwd) return
    if (!error.reason) throw error
    state.signalsProblem = error.message
  }
}

/** Returns the number of agents that wait for an answer, or for which another agent waits. */
export const openQuestions = () => state.agents.filter(agent => agent.asked_at || isAsked(agent)).length

const isAsked = agent => agent.requires_response && agent.type !== 'nudge_response'

/** Draws the agents if any part has changed. */
export function drawSignals() {
  const picture = JSON.stringify([state.agents, state.signalsProblem])
  if (picture === drawn) return
  drawn = picture
  const none = el(
    'p', {class: 'empty'}, el('strong', {}, 'No agents are at work beside each other here.'), ' ',
    code('nudge signals send AGENT --type abort'), ' tells one to stop; ', code('nudge signals deacon'), ' asks those that are quiet.',
  )
  const problem = state.signalsProblem && el('p', {class: 'notice'}, state.signalsProblem)
  fill(byId('view-signals'), problem, state.agents.length ? el('ul', {class: 'agents'}, state.agents.map(agentPart)) : !problem && none)
}

function agentPart(agent) {
  const {agent: name, from, type, message, timestamp, work, asked_at: asked, is_reported: reported, problem} = agent
  return el(
    'li',
    {},
    el('h2', {}, text(name)),
    el('p', {class: 'facts'}, work === undefined ? 'no active work' : work ? ['works on ', text(work)] : 'has active work'),
    type && el('p', {}, el('b', {}, type), ' from ', text(from), ', ', since(timestamp), ': ', line(message, 300)),
    !type && (problem ? el('p', {class: 'problem'}, 'Its signal cannot be read: ', problem) : el('p', {class: 'faint'}, 'no signal')),
    isAsked(agent) && el('p', {class: 'open'}, 'The sender waits for an answer.'),
    asked && el('p', {class: 'open'}, 'Asked ', since(asked), reported ? '; it did not answer, and the mayor has mail' : ', without an answer yet'),
  )
}
