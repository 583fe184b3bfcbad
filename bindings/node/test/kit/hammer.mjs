// A worker thread that makes all kinds of calls to a named store until its time is over, and reports its counts.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'

import { Context, NudgeError, Store } from '../../index.mjs'

const { name, me, until } = workerData
const store = new Store({ name })
// Calls of every method of the hints, which the tests of other languages also make.
const calls = Object.entries(JSON.parse(readFileSync(new URL('../../../../tests/fixtures/hammered.json', import.meta.url), 'utf8')))
const contexts = ['main', 'dev', 'feature/x'].map((branch) => new Context({ branch, cwd: `/work/${branch}`, os: 'linux' }))
const report = { calls: 0, found: 0, bumped: 0, conflicts: 0, counted: 0 }
const pick = (list) => list[Math.floor(Math.random() * list.length)]

/** Checks that value and version belong together. One call writes both, so no reader may see a mix of two calls. */
function check(found) {
  const { value, score, reasons, hint } = found
  if (hint.component === 'shared') assert.match(value, /^thread \d+, step \d+$/)
  assert(score >= 0 && score <= 1 && reasons.length > 0)
  assert.equal(hint.version, found.version)
  report.found += 1
}

/** Reads a counter and increases it, if no other thread has changed it meanwhile. Counts each success. */
function count() {
  const { hint } = store.get('counted', 'number')
  try {
    store.set('counted', 'number', String(Number(hint.value) + 1), { if_match_version: hint.version })
    report.counted += 1
  } catch (error) {
    assert(error instanceof NudgeError && error.code === 'E_CONFLICT', error.stack)
    report.conflicts += 1
  }
}

function change(step) {
  const scope = pick([undefined, { branch: 'dev' }, { cwd_glob: '/work/**' }, { os: 'linux', branch: ['main', 'feature/*'] }])
  const key = `k${step % 20}`
  if (step % 7 === 0) store.delete('own', `${me}`, { all: true })
  if (step % 7 === 0 || step % 11 === 0) store.set('own', `${me}`, 'mine', { scope })
  store.set('shared', key, `thread ${me}, step ${step}`, { scope, tags: [`t${step % 3}`] })
}

/** Calls each method once. A missing hint may be refused. */
function any() {
  for (const [method, params] of calls) {
    try {
      assert.equal(typeof store.call(method, params), 'object')
    } catch (error) {
      assert(error instanceof NudgeError && ['E_NOT_FOUND', 'E_CONFLICT'].includes(error.code), error.stack)
    }
    report.calls += 1
  }
}

store.set('own', `${me}`, 'mine')
for (let step = 0; Date.now() < until; step++) {
  // Checks the clock only once for this many calls.
  for (let i = 0; i < 50; i++, report.calls++) {
    const context = pick(contexts)
    const found = store.get('shared', `k${i % 20}`, context)
    if (found !== null) check(found)
  }
  change(step)
  store.bump('counted', 'uses', { delta: 2 })
  report.bumped += 2
  count()
  if (step % 10 === 0) store.query({ context: pick(contexts), tags: ['t1'] }).hints.forEach((row) => assert(row.score <= 1))
  if (step % 20 === 0) any()
  if (step % 50 === 0) assert(store.export().payload.components.shared)
  report.calls += 5
}
parentPort.postMessage(report)
