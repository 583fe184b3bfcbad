// Compares `get` with pure JavaScript that does the same work. Both use one Context for all calls, and take turns.
// Prints a line of JSON for each comparison: `{"what", "ratio", "ours_ns", "peer_ns"}`. Usage: get.mjs [ROUNDS
// SLICE_US]
import { Context, Store } from '../index.mjs'
import { compiled, uncompiled } from './peers.mjs'

const [rounds = 301, sliceUs = 500] = process.argv.slice(2).map(Number)
const HINTS = 5000
/** The number of keys that one agent looks up repeatedly; they are spread over the whole store. */
const ASKED = 64
const VALUE = 'docker compose build --service service-12 --profile dev-00af'
const PLACE = { cwd: '/work/mono/svc-12/src', branch: 'feature/login', os: 'linux' }
const ONE = [{ cwd_glob: '/work/mono/**', branch: 'feature/*', os: 'linux' }]
/** Four scopes. Three of them fit, and two of the three have the same specificity. */
const FOUR = [
  { cwd_glob: '/work/mono/**', branch: 'feature/*' },
  { cwd_glob: '**/svc-*/**', os: 'linux' },
  { os: 'linux' },
  { branch: 'main', os: 'darwin' }
]

/** Returns the numbers below `count` in a random order that is the same in every run. */
function shuffled(count) {
  let state = 7
  const random = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648
  const order = Array.from({ length: count }, (_, at) => at)
  for (let at = count - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    ;[order[at], order[other]] = [order[other], order[at]]
  }
  return order
}

function names(count) {
  return shuffled(count).map((at) => [`service-${String(at % 100).padStart(2, '0')}`, `build-${at}`])
}

let sink

/** Returns a function that looks up one key after the other, a given number of times. */
function asking(store, asked, context) {
  let at = 0
  return (count) => {
    for (let i = 0; i < count; i++) {
      const [component, key] = asked[at]
      at = at + 1 === asked.length ? 0 : at + 1
      sink = store.get(component, key, context)
    }
  }
}

const nanoseconds = () => Number(process.hrtime.bigint())

function timed(work, count) {
  const start = nanoseconds()
  work(count)
  return (nanoseconds() - start) / count
}

/** Returns the number of calls that fill a slice. The calls also warm up the code. */
function calibrate(work) {
  for (let count = 1; ; count *= 2) {
    if (timed(work, count) * count >= sliceUs * 1000 || count >= 1 << 24) return count
  }
}

const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor((numbers.length - 1) / 2)]

/** Lets all contenders take turns. Returns the nanoseconds of a call for each contender and turn. */
function takeTurns(contenders) {
  contenders.forEach(calibrate)
  const counts = contenders.map(calibrate)
  const times = contenders.map(() => [])
  for (let round = 0; round < rounds; round++) {
    contenders.forEach((work, at) => times[at].push(timed(work, counts[at])))
  }
  return times
}

function compare(label, scopes) {
  const count = HINTS / scopes.length
  const asked = names(count)
  const ours = new Store({ max_hints: HINTS, max_hints_per_component: HINTS, secret_guard: false })
  const peers = [compiled(), uncompiled()]
  for (const [component, key] of asked) {
    for (const scope of scopes) {
      ours.set(component, key, VALUE, { scope })
      peers.forEach((peer) => peer.set(component, key, VALUE, scope))
    }
  }
  asked.length = ASKED
  const context = new Context(PLACE)
  for (const [component, key] of asked) {
    const found = ours.get(component, key, context)
    for (const peer of peers) {
      const theirs = peer.get(component, key, PLACE)
      // Both must find the same hint, with the same score except for rounding.
      if (theirs.value !== found.value || Math.abs(theirs.score - found.score) > 1e-3) throw new Error('they differ')
      if (theirs.hint.specificity !== Object.keys(found.hint.meta.scope).length) throw new Error('they choose differently')
    }
  }
  const times = takeTurns([asking(ours, asked, context), ...peers.map((peer) => asking(peer, asked, PLACE))])
  for (const [at, name] of [[1, 'picomatch'], [2, 'micromatch']]) {
    const ratio = median(times[0].map((ns, turn) => ns / times[at][turn]))
    const [ours_ns, peer_ns] = [median([...times[0]]), median([...times[at]])]
    console.log(JSON.stringify({ what: `${name}, ${label}`, ratio, ours_ns, peer_ns }))
  }
}

compare('1 variant', ONE)
compare('4 variants', FOUR)
if (sink === undefined) throw new Error('nothing was found')
