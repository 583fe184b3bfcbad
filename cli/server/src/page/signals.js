// The agents beside each other where the person is: what they were last told, and which question is open.

import {byId, code, el, fill, line, since, text} from '/web/dom.js'
import {call, here} from '/web/rpc.js'
import {state} from '/web/store.js'

let drawn = ''

/** Reads who is there. A place without agents is no failure, nor is one whose files cannot be read. */
export async function loadSignals() {
  state.agents = []
  state.signalsProblem = ''
  try {
    state.agents = (await call('nudge.signals.list', {context: here()})).agents
  } catch (error) {
    // Without a folder nobody knows where to look.
    if (error.reason === 'E_INVALID' && !here().cwd) return
    if (!error.reason) throw error
    state.signalsProblem = error.message
  }
}

/** How many agents wait for something, or are waited for. */
export const openQuestions = () => state.agents.filter(agent => agent.asked_at || isAsked(agent)).length

const isAsked = agent => agent.requires_response && agent.type !== 'nudge_response'

/** Draws the agents, if anything of them is another. */
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
