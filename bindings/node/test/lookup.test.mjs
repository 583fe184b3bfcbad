// Tests that `get` never returns an outdated answer, although it stores rendered answers.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { test } from 'node:test'

import { Context, Store } from '../index.mjs'

const native = createRequire(import.meta.url)('../native.js')
const needsClock = { skip: 'testPanic' in native ? false : 'needs the feature test-clock' }

/** Returns the answer of the method table for a key, in the form of `get`. */
function told(store, component, key, context) {
  try {
    const { hint, match_explain: { score, reasons, parts } } = store.call('nudge.get_hint', { component, key, context })
    return { hint, score, reasons, parts }
  } catch (error) {
    assert.equal(error.code, 'E_NOT_FOUND')
    return null
  }
}

function agrees(store, component, key, context) {
  const found = store.get(component, key, context)
  const { hint, score, reasons, parts } = found ?? {}
  assert.deepEqual(found && { hint, score, reasons, parts }, told(store, component, key, context))
  return found
}

test('the same answer is the same object, until something of it changes', () => {
  const store = new Store()
  const dev = new Context({ branch: 'dev' })
  store.set('api', 'build', 'make')
  const one = agrees(store, 'api', 'build', dev)
  assert.equal(store.get('api', 'build', dev), one)
  assert.equal(one.value, 'make')
  store.set('api', 'build', 'make dev', { scope: { branch: 'dev' } })
  const two = agrees(store, 'api', 'build', dev)
  assert.deepEqual([two.value, two.reasons], ['make dev', ['branch=dev allowed']])
  assert.equal(store.get('api', 'build').value, 'make')
  store.bump('api', 'build', { context: dev })
  assert.equal(agrees(store, 'api', 'build', dev).reasons.at(-1), 'used once')
  store.delete('api', 'build', { variant: two.variant })
  assert.equal(agrees(store, 'api', 'build', dev).value, 'make')
  store.delete('api', 'build')
  assert.equal(agrees(store, 'api', 'build', dev), null)
  store.undo()
  assert.equal(agrees(store, 'api', 'build', dev).value, 'make')
})

test('time shows to the millisecond', needsClock, () => {
  const store = new Store()
  const here = new Context({ cwd: '/work/api' })
  const advance = (ms) => store.call('nudge.test_advance', { ms })
  store.set('api', 'build', 'make', { ttl: 'PT10H' })
  store.bump('api', 'build')
  const seen = new Set()
  for (let minute = 0; minute < 600; minute++) {
    seen.add(agrees(store, 'api', 'build', here))
    advance(59_999)
    agrees(store, 'api', 'build', here)
    advance(1)
  }
  assert(seen.size > 100)
  assert.equal(store.get('api', 'build', here), null)
})

test('plain objects, null and nothing are contexts too, and may change', () => {
  const store = new Store()
  store.set('api', 'build', 'make', { scope: { branch: 'dev' } })
  const context = { branch: 'dev' }
  assert.equal(store.get('api', 'build', context).value, 'make')
  context.branch = 'main'
  assert.equal(store.get('api', 'build', context), null)
  context.branch = undefined
  assert.equal(store.get('api', 'build', context), null)
  for (const none of [undefined, null, {}]) assert.equal(store.get('api', 'build', none), null)
  store.set('api', 'test', 'make test')
  for (const none of [undefined, null, {}, new Context(), new Context(null)]) assert.equal(store.get('api', 'test', none).value, 'make test')
})

test('one Context serves many stores, and one store many Contexts', () => {
  const dev = new Context({ branch: 'dev' })
  const stores = Array.from({ length: 20 }, (_, at) => {
    const store = new Store()
    store.set('api', 'build', `make ${at}`, { scope: { branch: 'dev' } })
    return store
  })
  for (let round = 0; round < 3; round++) {
    stores.forEach((store, at) => assert.equal(store.get('api', 'build', dev).value, `make ${at}`))
  }
  const contexts = Array.from({ length: 700 }, (_, at) => new Context({ branch: at % 7 ? 'dev' : 'main', cwd: `/w/${at}` }))
  for (let round = 0; round < 2; round++) {
    contexts.forEach((context, at) => assert.equal(stores[0].get('api', 'build', context)?.value, at % 7 ? 'make 0' : undefined))
  }
})

test('more keys than are remembered, and larger ones', () => {
  const store = new Store({ max_hints: 10_000, max_hints_per_component: 10_000 })
  const here = new Context({ cwd: '/work' })
  for (let at = 0; at < 9000; at++) store.set('api', `k${at}`, `v${at}`)
  for (let round = 0; round < 2; round++) {
    for (let at = 0; at < 9000; at++) assert.equal(store.get('api', `k${at}`, at % 2 ? here : undefined).value, `v${at}`)
    for (let at = 0; at < 9000; at++) assert.equal(store.get('api', `none${at}`, here), null)
  }
  const large = 'x y '.repeat(16_000)
  for (let at = 0; at < 200; at++) store.set('big', `k${at}`, `${at} ${large}`)
  for (let round = 0; round < 3; round++) {
    for (let at = 0; at < 200; at++) assert.equal(parseInt(store.get('big', `k${at}`, here).value), at)
  }
})

test('a context that calls the store while it is read', () => {
  const store = new Store({ max_hints: 10_000, max_hints_per_component: 10_000 })
  for (let at = 0; at < 4200; at++) store.set('api', `k${at}`, `v${at}`)
  store.set('api', 'build', 'make')
  const forgetful = (many, more) => ({
    get cwd() {
      for (let at = 0; at < many; at++) assert.equal(store.get('api', `k${at}`).value, `v${at}`)
      for (let at = 0; at < 300; at++) store.get('api', 'k0', { branch: `b${at}` })
      return '/x'
    },
    ...more
  })
  for (const many of [1, 4095, 4096, 4097, 4100]) {
    assert.equal(store.get('api', 'build', forgetful(many)).value, 'make', `${many} others`)
  }
  const dev = new Context({ branch: 'dev' })
  store.set('api', 'build', 'make dev', { scope: { branch: 'dev' } })
  const text = { toJSON: () => (forgetful(4100).cwd, '') }
  assert.equal(store.get('api', 'build', dev, { variant: text }).value, 'make')
  assert.equal(store.query({ context: dev, component: 'api', keys: ['build'], regex: { toJSON: () => (forgetful(4100).cwd, 'dev') } }).hints[0].hint.value, 'make dev')
  const closing = { get cwd() { store.close(); return '/x' } }
  assert.throws(() => store.get('api', 'build', closing), { code: 'E_UNAVAILABLE' })
})

test('what looks like a Context and is none is read as any object, or refused', () => {
  const store = new Store()
  const dev = new Context({ branch: 'dev' })
  for (const like of [new Proxy(dev, {}), Object.create(dev), Object.create(Context.prototype)]) {
    assert.throws(() => store.get('api', 'build', like), { code: 'E_INVALID' })
    assert.throws(() => store.query({ context: like }), { code: 'E_INVALID' })
    assert.throws(() => new Context(like), { code: 'E_INVALID' })
  }
})

test('large contexts do not add up', () => {
  const script = `
    import { Store } from ${JSON.stringify(new URL('../index.mjs', import.meta.url).href)}
    const store = new Store()
    store.set('api', 'build', 'make')
    const value = 'x'.repeat(30_000)
    const look = (at) => store.get('api', 'build', { env: Object.fromEntries(Array.from({ length: 30 }, (_, n) => [\`N\${n}\`, \`\${at}\${value}\`])) })
    look(0)
    gc()
    const before = process.memoryUsage().rss
    for (let at = 1; at < 120; at++) {
      if (look(at).value !== 'make') throw new Error('another answer')
      if (at % 16 === 0) gc()
    }
    gc()
    console.log(process.memoryUsage().rss - before)
  `
  const grown = execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], { encoding: 'utf8' })
  assert(Number(grown) < 100 << 20, `${grown >> 20} MiB more`)
})

test('scope numbers that are given out again', () => {
  const store = new Store()
  const dev = new Context({ branch: 'dev' })
  for (let at = 0; at < 300; at++) {
    store.set('api', 'build', `make ${at}`, { scope: { branch: at % 2 ? 'dev' : `other-${at}` } })
    assert.equal(agrees(store, 'api', 'build', dev)?.value, at % 2 ? `make ${at}` : undefined)
    store.delete('api', 'build')
  }
})

test('Context tells its fields and hides its environment', () => {
  const secret = ['not', 'shown'].join('-')
  const context = new Context({ cwd: '/a//b/', repo: 'git@host.example:Org/Repo.git', branch: 'dev', os: 'linux', env: { TOKEN: secret }, files_open: ['x'] })
  assert.deepEqual({ ...context.toJSON() }, { cwd: '/a/b', repo: 'host.example/org/repo', branch: 'dev', os: 'linux', files_open: ['x'] })
  assert.deepEqual([context.cwd, context.repo, context.branch, context.os, context.files_open], ['/a/b', 'host.example/org/repo', 'dev', 'linux', ['x']])
  assert(!JSON.stringify(context).includes(secret))
  const store = new Store()
  store.set('api', 'build', 'make', { scope: { env_match: { TOKEN: secret } } })
  for (const here of [context, new Context(context)]) {
    assert.equal(store.get('api', 'build', here).value, 'make')
    assert.equal(store.get('api', 'build', here, { variant: store.get('api', 'build', here).variant }).value, 'make')
    assert.equal(store.query({ context: here }).hints.length, 1)
    assert.equal(store.call('nudge.query', { context: here }).hints.length, 1)
    assert.equal(store.bump('api', 'build', { context: here }).hint.key, 'build')
  }
})

test('Context.detect sees this process', () => {
  const here = Context.detect()
  assert.equal(here.os, { linux: 'linux', darwin: 'darwin', win32: 'windows' }[process.platform])
  assert.equal(typeof here.repo, 'string')
  process.env.NUDGE_NODE_TEST = 'yes'
  const store = new Store()
  store.set('api', 'build', 'make', { scope: { env_match: { NUDGE_NODE_TEST: 'yes' } } })
  const { branch } = here
  assert.equal(store.get('api', 'build', Context.detect()).value, 'make')
  assert.equal(store.get('api', 'build', here), null, 'the environment is that of the call')
  assert.equal(store.get('api', 'build', Context.detect({ env: { NUDGE_NODE_TEST: 'no' } })), null)
  assert.equal(store.get('api', 'build', Context.detect({ env: null })), null)
  delete process.env.NUDGE_NODE_TEST
  assert.deepEqual([Context.detect({ branch: null }).branch, Context.detect({ branch: 'x' }).branch], [undefined, 'x'])
  assert.equal(Context.detect({ cwd: '/' }).cwd, '/')
  assert.equal(Context.detect().branch, branch)
  const nowhere = Context.detect({ cwd: null, env: null })
  assert.deepEqual({ ...nowhere.toJSON() }, { os: here.os }, 'null is unknown, and with it what a folder tells')
  assert.equal(Context.detect({ cwd: null, branch: 'x' }).branch, 'x')
  for (const cwd of ['relative', 3, '']) assert.throws(() => Context.detect({ cwd }), { code: 'E_INVALID' })
})
