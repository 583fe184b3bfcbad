// Tests wrong input of every kind in every function: the error is right, the store stays unchanged, and no message
// contains a secret.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

import { Context, NudgeError, Store, connect, tools } from '../index.mjs'

const native = createRequire(import.meta.url)('../native.js')

const circular = {}
circular.self = circular
let deep = []
for (let at = 0; at < 100_000; at++) deep = [deep]
const LONE = 'a\ud800b'

/** Values that are wrong for every text argument. */
const NO_TEXTS = [undefined, null, 0, -1, NaN, Infinity, 2 ** 60, 1n, true, Symbol('s'), () => 'a', [], ['a'], {}, new Map([['a', 1]]), Object('a'), circular, deep, LONE]
/** Texts that are not valid as a name. */
const NO_NAMES = ['', '\0', 'a\0b', 'a\nb', 'x'.repeat(257), '\u20ac'.repeat(86), 'x'.repeat(1 << 20)]

/** Checks that a call is refused with this code, whatever its message. */
function refuses(call, what, code = 'E_INVALID') {
  assert.throws(call, (error) => {
    assert(error instanceof NudgeError, `${what}: ${error?.stack ?? error}`)
    assert.equal(error.code, code, `${what}: ${error.message}`)
    assert.equal(error.data.reason, code)
    assert.match(error.message, /^\S[^\n]*[.?]$/)
    return true
  }, what)
}

const show = (value) => {
  try {
    return `${typeof value} ${String(JSON.stringify(value)).slice(0, 40)}`
  } catch {
    return typeof value
  }
}

function filled() {
  const store = new Store()
  store.set('api', 'build', 'make', { tags: ['x'] })
  store.set('api', 'build', 'make dev', { scope: { branch: 'dev' } })
  return store
}

/** Runs `check`, and checks that the store stays unchanged. */
function unchanged(check) {
  const store = filled()
  const before = JSON.stringify(store.export())
  check(store)
  assert.equal(JSON.stringify(store.export()), before)
}

test('names', () => {
  unchanged((store) => {
    for (const wrong of [...NO_TEXTS, ...NO_NAMES]) {
      const what = show(wrong)
      for (const [component, key] of [[wrong, 'build'], ['api', wrong]]) {
        refuses(() => store.get(component, key), `get ${what}`)
        refuses(() => store.get(component, key, { branch: 'dev' }, { variant: '' }), `get a variant ${what}`)
        refuses(() => store.set(component, key, 'v'), `set ${what}`)
        refuses(() => store.bump(component, key), `bump ${what}`)
        refuses(() => store.delete(component, key, { all: true }), `delete ${what}`)
        refuses(() => store.why(component, key), `why ${what}`)
      }
    }
  })
})

test('values', () => {
  unchanged((store) => {
    const wrong = [undefined, null, 0, NaN, 1n, true, Symbol('s'), () => 1, [], ['a'], new Map(), new Date(NaN), circular, deep, LONE]
    for (const value of [...wrong, {}, { type: 'x' }, { type: 'command' }, { type: 'command', cmd: 1 }, { type: 'json', data: undefined }, 'x'.repeat(65_537), { type: 'json', data: { n: NaN } }, { type: 'json', data: [new Set()] }, { type: 'json', data: [1, , 2] }, { type: 'json', data: [[undefined]] }, { type: 'json', data: { [Symbol('s')]: 1 } }, { type: 'path', abs: '/a', os: 'linux' }]) {
      refuses(() => store.set('api', 'build', value), `value ${show(value)}`)
    }
  })
  const store = new Store()
  assert.equal(store.set('api', 'k', 'a\0b').hint.value, 'a\0b')
  assert.equal(store.get('api', 'k').text, 'a\0b')
  assert.equal(store.set('api', 'k', '').hint.value, '')
  const odd = { type: 'json', data: JSON.parse('{"__proto__":{"x":1},"constructor":2,"\u{1f600}":"\\ud83d\\ude00"}') }
  assert.equal(JSON.stringify(store.set('api', 'k', odd).hint.value), JSON.stringify(odd))
  assert.equal({}.x, undefined)
  // As in JSON.stringify, toJSON replaces an object, and undefined is left out.
  const dated = { type: 'json', data: { at: new Date(0), gone: undefined } }
  assert.deepEqual(store.set('api', 'k', dated).hint.value.data, { at: '1970-01-01T00:00:00.000Z' })
  const path = { type: 'path', abs: '/a', os: ['macos', 'linux', 'win32'] }
  assert.deepEqual(store.set('api', 'k', path).hint.value.os, ['darwin', 'linux', 'windows'])
})

test('options', () => {
  unchanged((store) => {
    for (const options of ['x', 1, NaN, true, [], [1], Symbol('s'), () => 1, 1n]) {
      for (const call of ['set', 'get', 'bump', 'delete']) {
        const more = { set: ['v'], get: [undefined] }[call] ?? []
        refuses(() => store[call]('api', 'build', ...more, options), `${call} ${show(options)}`)
      }
      for (const call of ['query', 'export', 'suggest', 'outcome', 'envNames', 'undo']) refuses(() => store[call](options), `${call} ${show(options)}`)
      refuses(() => store.import({}, options), `import ${show(options)}`)
      refuses(() => new Store(options), `new Store ${show(options)}`)
      refuses(() => connect(options), `connect ${show(options)}`)
    }
    const wrong = {
      tags: ['x', 1, [1], [''], [LONE], Array(33).fill('x'), [undefined], { 0: 'x' }],
      ttl: [1, 'P1Y', 'soon', -1, ['PT1H'], 'PT0S'],
      scope: ['dev', 1, [1], { branch: 1 }, { branhc: 'x' }, { os: 'beos' }, { os: [1] }, { env_match: { A: [] } }, { cwd_glob: [LONE] }],
      priority: [0, 11, -1, 5.5, NaN, Infinity, '5', 1n, [5], 2 ** 70],
      confidence: [-0.1, 1.1, NaN, '1', [1]],
      reason: [1, 'x'.repeat(2049), ['x'], LONE],
      sensitivity: ['Secret', 1, true],
      source: ['me', 1],
      added_by: [1, 'x'.repeat(257), ['x']],
      if_match_version: [-1, 0.5, NaN, '1', 2 ** 70],
      variant: [1, ['x'], LONE],
      allow_secret: [1, 'yes', NaN, [true]],
      meta: [1, { tags: ['x'] }],
      component: ['x'],
      tagz: [['x']]
    }
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values) refuses(() => store.set('api', 'build', 'v', { [name]: value }), `set ${name} ${show(value)}`)
    }
    for (const delta of [0, -1, 1001, 1.5, NaN, '1', [1]]) refuses(() => store.bump('api', 'build', { delta, variant: '' }), `delta ${delta}`)
    for (const limit of [0, -1, 1001, 1.5, NaN, '1']) refuses(() => store.query({ limit }), `limit ${limit}`)
    for (const regex of ['(', 1, ['x'], LONE, 'x'.repeat(1025)]) refuses(() => store.query({ regex }), `regex ${regex}`)
    for (const payload of [undefined, null, 'x', 1, [], [1], {}, new Map(), circular, { components: 1 }, { schema_version: '9.0', components: {} }]) {
      refuses(() => store.import(payload), `import ${show(payload)}`)
    }
    refuses(() => store.bump('api', 'build', { component: 'other' }), 'an argument as an option')
    refuses(() => store.get('api', 'build', null, { varaint: '' }), 'a misspelt option')
    for (const context of [undefined, null, {}, new Context(), new Context({ env: {} })]) {
      refuses(() => store.bump('api', 'build', { context }), 'several variants')
      refuses(() => store.call('nudge.bump', { component: 'api', key: 'build', context }), 'several variants')
    }
    refuses(() => store.set('a', 'b', 'c', { scope: { branch: '' } }), 'an empty branch', 'E_SCOPE_INVALID')
    refuses(() => store.set('api', 'build', 'c', { if_match_version: 7 }), 'another version', 'E_CONFLICT')
    refuses(() => store.delete('api', 'nothing'), 'not there', 'E_NOT_FOUND')
  })
})

test('an error names the culprit', () => {
  const store = new Store()
  const says = (call, message) => assert.throws(call, { name: 'NudgeError', code: 'E_INVALID', message })
  says(() => store.get('api', 5), '`key` must be a string, not a number.')
  says(() => store.get(null, 'k'), '`component` must be a string, not null.')
  says(() => store.set('api', 'k', 'v', { allowSecert: true }), 'There is no option `allowSecert`; did you mean `allowSecret`?')
  says(() => store.set('api', 'k', 'v', { allow_secret: true, allowSecret: true }), 'allowSecret and allow_secret are the same option; give it once.')
  says(() => store.set('api', 'k', 'v', { scope: { cwdGolb: '/a' } }), 'There is no scope field `cwdGolb`; did you mean `cwdGlob`?')
  says(() => store.set('api', 'k', { type: 'json', data: { size: NaN } }), 'A number must be finite: `size` is NaN.')
  says(() => store.set('api', 'k', { type: 'json', data: { at: () => 1 } }), /^`at` is a function, /)
  says(() => store.set('api', 'k', { type: 'json', data: { all: new Map() } }), /^`all` is Map\. /)
  says(() => store.set('api', 'k', 'v', { priority: 11 }), /priority/)
  says(() => store.query({ limit: '5' }), /limit/)
  says(() => store.query('api'), 'Pass the options as an object, not a string.')
  says(() => store.undo({ number: 3 }), 'There is no option `number`; the only one is `id`.')
  says(() => new Store({ maxHints: '5' }), 'maxHints must be a whole number of 0 or more, not a string.')
  says(() => new Store({ max_hint: 5 }), 'There is no option `max_hint`; did you mean `maxHints`?')
  says(() => new Store({ secretGuard: 'no' }), 'secretGuard must be true or false, not a string.')
  says(() => connect({ runtimeDri: '/x' }), 'There is no option `runtimeDri`; did you mean `runtimeDir`?')
})

test('settings of a store', () => {
  for (const name of ['max_components', 'max_hints_per_component', 'max_hints', 'max_bytes', 'suggest_max']) {
    for (const value of [-1, 1.5, NaN, Infinity, '1', [1], {}, true, 1n]) refuses(() => new Store({ [name]: value }), `${name} ${show(value)}`)
  }
  for (const value of [1, 'no', NaN]) refuses(() => new Store({ secret_guard: value }), `secret_guard ${value}`)
  for (const value of [1, 'P1Y', '']) refuses(() => new Store({ default_ttl: value }), `default_ttl ${value}`)
  for (const value of [1, 'yes']) refuses(() => new Store({ from_env: value }), `from_env ${value}`)
  for (const value of [1, '', 'x'.repeat(257), LONE, ['x'], {}]) refuses(() => new Store({ name: value }), `name ${show(value)}`)
  refuses(() => new Store({ max_hint: 1 }), 'a misspelt setting')
  refuses(() => new Store({ env: {} }), 'env')
  refuses(() => Store.forget(1), 'forget')
  for (const value of [1, LONE, ['x'], {}]) refuses(() => connect({ runtime_dir: value }), `runtime_dir ${show(value)}`)
  for (const value of [1, null, LONE]) refuses(() => connect({ name: value }), `name of a caller ${show(value)}`)
  refuses(() => connect({ dir: 'x' }), 'a misspelt option')
  const quota = new Store({ max_hints: 1 })
  quota.set('a', 'b', 'c')
  refuses(() => quota.set('a', 'd', 'c'), 'full', 'E_QUOTA')
  for (const none of [undefined, null, {}, { name: null, max_hints: null, default_ttl: undefined }]) assert.equal(new Store(none).status().limits.hints, 5000)
})

test('contexts', () => {
  unchanged((store) => {
    const wrong = [0, 1, NaN, true, 'x', '/work', [1], Symbol('s'), () => 1, new Map(), circular]
    const fields = [{ cwd: 'rel' }, { cwd: 1 }, { cwd: '/a/../b' }, { cwd: '/a\0' }, { cwd: `/${'x'.repeat(4096)}` }, { cwd: `/${LONE}` }, { repo: 1 }, { repo: 'https://' }, { branch: 1 }, { branch: 'a\nb' }, { os: 'beos' }, { os: ['linux'] }, { env: 'x' }, { env: { A: 1 } }, { env: { A: NaN } }, { env: Object.fromEntries(Array.from({ length: 257 }, (_, at) => [`N${at}`, ''])) }, { files_open: 'x' }, { files_open: [1] }]
    for (const context of [...wrong, ...fields]) {
      const what = `context ${show(context)}`
      refuses(() => new Context(context), what)
      refuses(() => store.get('api', 'build', context), what)
      refuses(() => store.get('api', 'build', context, { variant: '' }), what)
      refuses(() => store.query({ context }), what)
      refuses(() => store.bump('api', 'build', { context }), what)
      refuses(() => store.why('api', 'build', context), what)
      refuses(() => store.call('nudge.query', { context }), what)
      refuses(() => store.outcome({ command: 'make', ok: true, context }), what)
      refuses(() => store.suggest({ event: 'start', context }), what)
    }
    for (const context of [{ barnch: 'dev' }, { branch: 'dev', colour: 1 }, { files_open: ['a'], filesOpen: ['a'] }, { ['__proto__x']: 1 }]) {
      const what = `context ${show(context)}`
      for (const call of [() => new Context(context), () => Context.detect(context), () => store.get('api', 'build', context), () => store.get('api', 'build', context, { variant: '' }), () => store.query({ context }), () => store.bump('api', 'build', { context }), () => store.why('api', 'build', context), () => store.digest('start', { context }), () => store.recall('x', { context }), () => tools(store, { context })]) refuses(call, what)
      // The JSON call ignores an unknown field, because a newer caller may send one.
      store.call('nudge.get_hint', { component: 'api', key: 'build', context })
    }
    assert.throws(() => store.get('api', 'build', { barnch: 'dev' }), { message: 'There is no context field `barnch`; did you mean `branch`?' })
    for (const given of [null, 1, 'x', [1]]) refuses(() => Context.detect(given), `detect ${show(given)}`)
    refuses(() => new Context({ get cwd() { throw new Error('mine') } }), 'a getter that throws')
    refuses(() => store.get('api', 'build', new Proxy({}, { ownKeys() { throw new Error('mine') } })), 'a proxy that throws')
  })
  assert.throws(() => Context(), TypeError)
  assert.throws(() => Reflect.get(Context.prototype, 'cwd', {}), TypeError)
})

test('call', () => {
  unchanged((store) => {
    for (const method of [undefined, null, 1, [], {}, Symbol('s')]) {
      refuses(() => store.call(method, {}), `call ${show(method)}`)
      refuses(() => store.callJson(method, '{}'), `callJson ${show(method)}`)
    }
    for (const method of ['', 'x', 'nudge.', 'set_hint', 'nudge.shutdown', '__proto__', LONE, 'nudge.status\0']) {
      refuses(() => store.call(method, {}), `call ${method}`, 'E_UNKNOWN_METHOD')
      refuses(() => store.callJson(method, '{}'), `callJson ${method}`, 'E_UNKNOWN_METHOD')
    }
    for (const params of [null, 1, 'x', true, NaN, [], [1], Symbol('s'), () => 1, 1n, new Map()]) refuses(() => store.call('nudge.status', params), `params ${show(params)}`)
    for (const params of ['', 'x', '{', '[]', '1', 'null', '{}{}', '{"a":}', `"${LONE}"`, '\0', '{"a":1}']) refuses(() => store.callJson('nudge.status', params), `params ${params}`)
    for (const half of [LONE, 'a\\ud800b', 'a\\udc00']) {
      for (const value of [`"${half}"`, `{"type":"json","data":["${half}"]}`, `{"type":"json","data":{"${half}":1}}`]) {
        refuses(() => store.callJson('nudge.set_hint', `{"component":"api","key":"build","value":${value}}`), `callJson ${show(value)}`)
      }
    }
    for (const params of [undefined, null, {}, 1]) refuses(() => store.callJson('nudge.status', params), `params ${show(params)}`)
  })
})

test('a store that is closed', () => {
  const store = filled()
  const context = new Context({ branch: 'dev' })
  store.get('api', 'build', context)
  store.get('api', 'build')
  store.close()
  store.close()
  const closed = (call, what) => refuses(call, what, 'E_UNAVAILABLE')
  closed(() => store.get('api', 'build'), 'get')
  closed(() => store.get('api', 'build', context), 'get from a Context')
  closed(() => store.get('api', 'build', context, { variant: '' }), 'get a variant')
  closed(() => store.set('api', 'build', 'x'), 'set')
  closed(() => store.query({ context }), 'query')
  closed(() => store.call('nudge.status'), 'call')
  closed(() => store.callJson('nudge.status', '{}'), 'callJson')
  store[Symbol.dispose]()
})

test('the native functions refuse what index.js never passes', () => {
  for (const numbers of [[], [-1, -1, -1], [1e9, 0, 0], ['x', {}, null], [NaN, NaN, NaN], [2 ** 40, 0, 0]]) assert.equal(native.get(...numbers), -1)
  for (const name of ['open', 'call', 'callFrom', 'view', 'reset', 'pair', 'render', 'find', 'checkContext', 'forget', 'close', 'connect']) {
    for (const given of [[], [{}], [null, null, null], [Symbol('s')], [1, 1, 1, 1], ['x', 'x', 'x']]) {
      try {
        native[name](...given)
      } catch (error) {
        assert(error instanceof Error)
      }
    }
  }
})

test('a panic is an Error, and the process goes on', { skip: 'testPanic' in native ? false : 'needs the feature test-clock' }, () => {
  assert.throws(() => native.testPanic(), { name: 'Error', code: 'GenericFailure', message: /as the test asked/ })
  assert.equal(filled().get('api', 'build').value, 'make')
})

test('no error repeats a value', () => {
  const secret = ['kR7', 'vQ2m', 'Zp9', 'Lw4T', 'b8N', 'c3Hs', 'Jd6'].join('')
  const store = new Store()
  const calls = [
    () => store.set('api', 'k', secret, { priority: 99 }),
    () => store.set('api', 'k', { type: 'command', cmd: secret, more: 1 }),
    () => store.set('api', 'k', { type: 'json', data: secret, x: NaN }),
    () => store.set('api', 'k', `password=${secret}`),
    () => store.set('api', 'k', secret, { sensitivity: 'secret', if_match_version: 9 }),
    () => store.set('api', 'k', secret, { sensitivity: 'secret', ttl: 'x' }),
    () => store.get('api', 'k', { env: { A: secret }, cwd: 'x' }),
    () => new Context({ env: { A: secret.repeat(2000) } }),
    () => store.outcome({ command: secret, ok: 'yes' }),
    () => store.callJson('nudge.set_hint', `{"component":"${secret}`)
  ]
  calls.forEach((call, at) => {
    assert.throws(call, (error) => {
      assert(error instanceof NudgeError)
      assert(!`${error.stack} ${JSON.stringify(error.data)}`.includes(secret.slice(0, 20)), error.message)
      return true
    }, `call ${at}`)
  })
})
