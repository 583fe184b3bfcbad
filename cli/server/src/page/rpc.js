// Calls the running session.

const TOKEN = 'nudge-token'
const HERE = 'nudge-here'
/** The time for which a change is repeated while one server takes over from another. */
const PATIENCE_MS = 8_000

/** The server refused a call; nothing was changed. */
export class Refused extends Error {
  constructor({message, data}) {
    super(message)
    this.reason = data?.reason ?? ''
    this.data = data ?? {}
  }
}

/** No server answers at the moment. */
export class Unreachable extends Error {}

/** The session no longer knows this page. */
export class Over extends Error {}

let token = sessionStorage.getItem(TOKEN)
let lastId = 0

export const isKnown = () => token !== null

/** Returns the place of the person, as the context of the methods. */
export function here() {
  try {
    return JSON.parse(sessionStorage.getItem(HERE)) ?? {}
  } catch {
    return {}
  }
}

export function setHere(context) {
  sessionStorage.setItem(HERE, JSON.stringify(context))
}

async function post(path, body, headers = {}) {
  let answer
  try {
    answer = await fetch(path, {
      method: 'POST',
      headers: {'Content-Type': 'application/json', ...headers},
      body: JSON.stringify(body),
      credentials: 'omit',
      redirect: 'error',
      cache: 'no-store',
    })
    return [answer.status, answer.status === 202 ? {} : await answer.json()]
  } catch {
    throw new Unreachable('The server does not answer.')
  }
}

/** Exchanges the code of the address for a token. */
export async function enter(code) {
  const [status, answer] = await post('/web/session', {code})
  if (status !== 200) throw new Over(answer.error?.message ?? 'This address does not work; run `nudge ui` again.')
  token = answer.token
  sessionStorage.setItem(TOKEN, token)
  setHere(answer.here)
}

async function callOnce(method, params, key) {
  const headers = {Authorization: `Bearer ${token}`, ...(key ? {'Idempotency-Key': key} : {})}
  const [status, answer] = await post('/web/rpc', {jsonrpc: '2.0', id: ++lastId, method, params}, headers)
  // Another session refuses the token (401), or the host name by which this page was opened (403).
  if (status === 401 || status === 403) {
    token = null
    sessionStorage.removeItem(TOKEN)
    throw new Over(status === 401 ? answer.error.message : 'This page is not known here any more; run `nudge ui` again.')
  }
  if (answer.error) throw new Refused(answer.error)
  return answer.result
}

/** Calls a method that changes nothing. */
export const call = (method, params = {}) => callOnce(method, params, null)

const pause = ms => new Promise(done => setTimeout(done, ms))

/** Calls a method that changes something; it is applied once, even if it is sent several times. */
export async function change(method, params) {
  const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
  const until = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      return await callOnce(method, params, key)
    } catch (error) {
      // A server that ends hands the session over, and the next one makes the change if the old one did not.
      const again = error instanceof Unreachable || error.reason === 'E_UNAVAILABLE'
      if (!again || Date.now() > until) throw error
      await pause(200)
    }
  }
}

const untilSeen = () =>
  document.hidden ? new Promise(seen => document.addEventListener('visibilitychange', seen, {once: true})) : null

/**
 * Follows changes without end: calls `heard(changed)` after each answer, with true if stored data changed, and
 * `silent()` while no server answers. Ends when the session no longer knows this page.
 */
export async function follow(heard, silent) {
  let since
  for (;;) {
    await untilSeen()
    try {
      const first = since === undefined
      const told = await call('nudge.changes', first ? {} : {since, wait_s: 5})
      since = told.next
      await heard(first || told.changes.length > 0 || told.missed !== 0)
    } catch (error) {
      if (error instanceof Over) throw error
      silent(error)
      await pause(500)
    }
  }
}
