// Runs all of `tests/vectors`. Each case runs through `callJson` and, in a second store, through the typed methods.
// Both must give the same answer.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'

import { Context, NudgeError, Store, connect, errorCodes } from '../index.mjs'
import { binary, runtimeDir, serve } from './kit/serve.mjs'
import { judge, resolve } from './kit/vectors.mjs'

const native = createRequire(import.meta.url)('../native.js')
const folder = new URL('../../../tests/vectors/', import.meta.url)
// The builders and operators that `tests/README.md` lists.
const codes = Object.fromEntries(Object.entries(errorCodes).filter(([, code]) => code > 0))

const has = (object, ...names) => Object.keys(object).every((name) => names.includes(name))
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const CONTEXT = ['cwd', 'repo', 'branch', 'os', 'env', 'files_open']
const META = ['tags', 'ttl', 'scope', 'priority', 'confidence', 'reason', 'sensitivity', 'source', 'added_by']

/**
 * Returns a function that makes a call with the typed methods. Returns undefined or false if they cannot express it.
 */
function typed(store, method, params) {
  const { component, key, value, context, payload, ...rest } = params
  // Only the typed methods accept `macos`.
  if (JSON.stringify(params).includes('"macos"')) return undefined
  // The JSON call ignores unknown fields, because newer callers may send them.
  if (isObject(context) && !has(context, ...CONTEXT)) return undefined
  switch (method) {
    case 'set_hint': {
      const { meta = {}, ...beside } = rest
      // The typed `set` takes no context.
      const sayable = context === undefined && isObject(meta) && has(meta, ...META) && has(beside, 'if_match_version', 'variant', 'allow_secret')
      return sayable && (() => store.set(component, key, value, { ...meta, ...beside }))
    }
    case 'get_hint':
      return has(rest, 'variant') && (() => getAllWays(store, component, key, context, rest))
    case 'bump':
      return () => store.bump(component, key, context === undefined ? rest : { ...rest, context })
    case 'delete_hint':
      return () => store.delete(component, key, rest)
    case 'query':
    case 'suggest':
    case 'outcome':
    case 'export':
    case 'undo':
      return () => store[method](params)
    case 'import':
      return () => store.import(payload, rest)
    case 'digest': {
      const { event, ...others } = params
      return () => store.digest(event, others)
    }
    case 'told':
      return has(params, 'client_session', 'ticket') && (() => store.told(params.client_session, params.ticket))
    case 'list_components':
      return has(params) && (() => store.listComponents())
    case 'env_names':
      return () => store.envNames(params)
    case 'why':
      return has(rest) && (() => store.why(component, key, context))
    case 'deletions':
    case 'stats':
    case 'status':
      return has(params) && (() => store[method]())
    default:
      return undefined
  }
}

/**
 * Returns the result of `get` in the form of `nudge.get_hint`. A plain context and a `Context` must give the same
 * result.
 */
function getAllWays(store, component, key, context, options) {
  const found = Object.keys(options).length ? store.get(component, key, context, options) : store.get(component, key, context)
  const again = store.get(component, key, new Context(context), options)
  assert.deepEqual(again, found)
  if (found === null) throw new NudgeError('E_NOT_FOUND', 'Nothing fits.')
  const { hint, score, reasons, parts } = found
  assert.deepEqual([found.value, found.variant, found.version], [hint.value, hint.variant ?? '', hint.version])
  return { hint, match_explain: { matched: true, score, parts, reasons } }
}

/** Makes a call. Returns the answer in the form that `judge` expects. */
function answer(call) {
  try {
    const result = call()
    return typeof result === 'string' ? { result: JSON.parse(result), text: result } : { result, text: JSON.stringify(result) }
  } catch (error) {
    if (!(error instanceof NudgeError)) throw error
    const object = { code: error.rpcCode, message: error.message, data: error.data }
    return { error: object, text: JSON.stringify(object) }
  }
}

/** Removes the fields in which the answers of two stores differ: identities, and times of this machine. */
const common = ({ result, error }) =>
  JSON.parse(JSON.stringify({ result, reason: error?.data.reason, code: error?.code }), (name, value) => (name === 'session_id' ? '' : value))

class Run {
  constructor(config) {
    this.config = config
    this.saved = [new Map(), new Map()]
    this.restart()
  }

  restart() {
    this.stores = [new Store(this.config), new Store(this.config)]
  }

  advance(ms) {
    for (const store of this.stores) store.call('nudge.test_advance', { ms })
  }

  call(step) {
    const method = `nudge.${step.call}`
    const answers = this.stores.map((store, at) => {
      if (step.params_raw !== undefined) return answer(() => store.callJson(method, resolve(step.params_raw, this.saved[at])))
      const params = resolve(step.params, this.saved[at])
      if (at === 0) return answer(() => store.callJson(method, JSON.stringify(params)))
      return answer(typed(store, step.call, params) || (() => store.call(method, params)))
    })
    assert.deepEqual(common(answers[1]), common(answers[0]))
    // Only `call` and `why` report why nothing fits.
    const isMiss = step.call === 'get_hint' && answers[1].error?.message === 'Nothing fits.'
    judge(step, answers[0], this.saved[0], codes)
    if (!isMiss) judge(step, answers[1], this.saved[1], codes)
  }
}

/**
 * A case about a source that a store of this process does not have. It runs on a single connected store, because a
 * second call would count as another use.
 */
class SessionRun {
  constructor(store, folder) {
    this.store = store
    this.saved = new Map([['folder', folder]])
  }

  write({ write, text }) {
    const file = join(this.saved.get('folder'), write)
    mkdirSync(dirname(file), { recursive: true })
    if (text === undefined) rmSync(file)
    else writeFileSync(file, resolve(text, this.saved))
  }

  advance(ms) {
    this.store.call('nudge.test_advance', { ms })
  }

  call(step) {
    const params = resolve(step.params, this.saved)
    const [source, verb] = step.call.split('.')
    const said = answer(() => this.store.callJson(`nudge.${step.call}`, JSON.stringify(params)))
    if (verb === 'check' || verb === 'list') {
      assert.deepEqual(common(answer(() => this.store[source][verb](params))), common(said))
    }
    judge(step, said, this.saved, codes)
  }
}

async function runOnSession(test, { steps }) {
  const runtime_dir = runtimeDir(test)
  await serve(runtime_dir, binary)
  const store = connect({ runtime_dir })
  try {
    // The list of methods does not contain this method, because only test builds have it.
    store.call('nudge.test_advance', { ms: 0 })
  } catch (refused) {
    store.close()
    if (refused.code !== 'E_UNKNOWN_METHOD') throw refused
    return test.skip('the clock of this nudge cannot be moved: NUDGE_BIN names one with the feature test-clock')
  }
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'nudge-vectors-')))
  test.after(() => rmSync(folder, { recursive: true, force: true }))
  play(new SessionRun(store, folder), steps)
  store.close()
}

function run({ config, steps }) {
  play(new Run(config), steps)
}

function play(run, steps) {
  for (const step of steps) {
    if (step.restart) run.restart()
    else if (step.advance_ms !== undefined) run.advance(step.advance_ms)
    else if (step.write !== undefined) run.write(step)
    else run.call(step)
  }
}

const skip = 'testPanic' in native ? false : 'the clock cannot be moved in a build without the feature test-clock'

for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const cases = JSON.parse(readFileSync(new URL(file, folder), 'utf8'))
  describe(file, { skip }, () => {
    for (const one of cases) {
      const noServer = one.needs && !binary && 'NUDGE_BIN names no binary'
      it(one.name, { skip: noServer }, (test) => (one.needs ? runOnSession(test, one) : run(one)))
    }
  })
}

// Promise: see `main`.
it('there are vectors', () => assert(readdirSync(folder).length > 15))
