// Compares the package with the method table, and checks the results of its methods.
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { inspect } from 'node:util'

import * as esm from '../index.mjs'

const require = createRequire(import.meta.url)
const native = require('../native.js')
const { Store, Context, NudgeError, errorCodes, methods } = esm
const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')
const types = read('types.d.ts') + read('index.d.ts')

/**
 * Returns the name of a method in JavaScript: `set` for `nudge.set_hint`, `listComponents` for `nudge.list_components`.
 */
const methodName = (name) =>
  name.replace('nudge.', '').replace('_hint', '').replace(/_([a-z])/g, (_, letter) => letter.toUpperCase())

/** Returns the strings of a union in index.d.ts. */
function union(name) {
  const text = types.match(new RegExp(`export type ${name} =([^]*?)(?=\\n\\n|\\nexport)`))[1]
  return [...text.matchAll(/'([^']+)'/g)].map(([, one]) => one)
}

/** Returns the fields of an interface in index.d.ts. */
function fields(name) {
  const text = types.match(new RegExp(`export interface ${name} [^]*?{\n([^]*?)\n}`))[1]
  return [...text.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, field]) => field).sort()
}

test('there is a method for each of the table, and no other', () => {
  const own = Object.getOwnPropertyNames(Store.prototype).filter((name) => !['constructor', 'call', 'callJson', 'sources', 'size', 'close'].includes(name))
  assert.deepEqual(own.sort(), methods().map(methodName).sort())
  assert.deepEqual(union('Method').sort(), [...methods()].sort())
  for (const name of own) assert.match(types, new RegExp(`^ {2}${name}\\(`, 'm'), `${name} has no type`)
})

test('there is a code for each kind of error, and no other', () => {
  const kinds = JSON.parse(native.errors())
  assert.deepEqual(union('ErrorCode').sort(), [...new Set(kinds.map(([code]) => code))].sort())
  assert.deepEqual(Object.keys(errorCodes).sort(), union('ErrorCode').sort())
  for (const [code, number] of kinds) if (number > 0) assert.equal(errorCodes[code], number)
})

test('index.d.ts has the fields and words of the params', { skip: 'testSchemas' in native ? false : 'needs the feature test-clock' }, () => {
  const schemas = JSON.parse(native.testSchemas())
  const params = (name) => schemas[`nudge.${name}`].properties
  const set = params('set_hint')
  // The library's `set` does not limit a hint to the caller's repository, so it has neither `reach` nor `context`.
  const { component, key, value, meta, reach, context, ...beside } = set
  assert.deepEqual(fields('SetOptions'), Object.keys({ ...meta.properties, ...beside }).sort())
  assert.deepEqual(fields('Scope'), Object.keys(meta.properties.scope.properties).sort())
  assert.deepEqual(fields('QueryParams'), Object.keys(params('query')).sort())
  assert.deepEqual(fields('SuggestParams'), Object.keys(params('suggest')).sort())
  const { query, ...recall } = params('recall')
  assert.equal(query.type, 'string')
  assert.deepEqual(fields('RecallOptions'), Object.keys(recall).sort())
  // `digest` takes the event as its first argument, and everything else as options.
  assert.deepEqual(params('digest'), params('suggest'))
  assert.deepEqual(fields('OutcomeParams'), Object.keys(params('outcome')).sort())
  assert.deepEqual(fields('EnvNamesParams').concat(fields('QueryParams')).sort(), Object.keys(params('env_names')).sort())
  assert.deepEqual(fields('ContextSpec'), schemas.context.fields.toSorted())
  assert.deepEqual(union('Source').sort(), meta.properties.source.enum.toSorted())
  assert.deepEqual(union('Sensitivity').sort(), meta.properties.sensitivity.enum.toSorted())
  assert.deepEqual(union('SuggestEvent').sort(), params('suggest').event.enum.toSorted())
  assert.deepEqual(union('ImportMode').sort(), params('import').mode.enum.toSorted())
  assert.deepEqual(union('Os').sort(), schemas.context.os.toSorted())
  // The store accepts each word of these unions.
  const store = new Store()
  const takes = (value) => store.set('a', 'k', value).hint.value
  for (const format of union('TemplateFormat')) assert.deepEqual(takes({ type: 'template', format, body: 'x' }).format, format)
  for (const shell of union('Shell')) assert.deepEqual(takes({ type: 'command', cmd: 'x', shell }).shell, shell)
  for (const os of union('OsName')) assert.equal(new Context({ os }).os, { macos: 'darwin', win32: 'windows' }[os] ?? os)
})

test('no const enum', () => assert.doesNotMatch(types, /\benum\b/))

test('every function exported to JavaScript catches panics', () => {
  const folder = new URL('../src/', import.meta.url)
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.rs'))
  let seen = 0
  for (const name of files) {
    for (const [attribute] of readFileSync(new URL(name, folder), 'utf8').matchAll(/^#\[napi.*$/gm)) {
      assert.match(attribute, /catch_unwind/, `${name}: ${attribute}`)
      seen += 1
    }
    // A function without `#[napi]` calls `catch_unwind` itself.
    const raw = readFileSync(new URL(name, folder), 'utf8').match(/extern "C" fn/g) ?? []
    if (raw.length) assert.match(readFileSync(new URL(name, folder), 'utf8'), /catch_unwind\(/)
  }
  assert(seen > 10)
})

test('import and require give the same objects', () => {
  const cjs = require('../index.js')
  assert.deepEqual(Object.keys(cjs).sort(), Object.keys(esm).sort())
  for (const name of Object.keys(cjs)) assert.equal(cjs[name], esm[name])
})

test('results are frozen plain objects', () => {
  const store = new Store()
  const frozen = (value) => {
    if (typeof value !== 'object' || value === null) return
    assert(Object.isFrozen(value))
    assert([Object.prototype, Array.prototype].includes(Object.getPrototypeOf(value)))
    Object.values(value).forEach(frozen)
  }
  frozen(store.set('api', 'build', { type: 'json', data: { a: [{ b: 1 }] } }, { tags: ['x'], scope: { branch: 'dev' } }))
  frozen(store.get('api', 'build', { branch: 'dev' }))
  frozen(store.query({ context: { branch: 'dev' } }))
  frozen(store.export())
  frozen(store.status())
  frozen([...store][0])
  frozen(store.digest('start'))
  frozen(store.why('api', 'build', { branch: 'dev' }))
  frozen(store.delete('api', 'build'))
  frozen(store.deletions())
  frozen(store.undo())
  frozen(methods())
  frozen(errorCodes)
})

test('options may be named as JavaScript names things', () => {
  const store = new Store({ maxHints: 3, secretGuard: true, defaultTtl: 'PT1H' })
  const stored = store.set('api', 'build', 'make', { addedBy: 'me', ifMatchVersion: 0, allowSecret: false, scope: { cwdGlob: '/a/**', envMatch: { STAGE_NAME: 'x' }, envRequired: 'CI' } })
  assert.deepEqual(stored.hint.meta, { added_by: 'me', ttl: 'PT1H', scope: { cwd_glob: ['/a/**'], env_match: { STAGE_NAME: ['x'] }, env_required: ['CI'] } })
  const context = { cwd: '/a', env: { CI: '', STAGE_NAME: 'x' }, filesOpen: ['/a/api/x'] }
  assert.deepEqual(new Context(context).filesOpen, ['/a/api/x'])
  assert.match(store.get('api', 'build', context).reasons.at(-1), /^open file/)
  assert.equal(store.query({ includeIneligible: true }).hints.length, 1)
  assert.equal(store.recall('build', { maxBytes: 1, context }).omitted, 1)
  assert.equal(store.export({ includeSecrets: true }).omitted_secrets, 0)
  assert.equal(store.import({ components: {} }, { allowSecret: true }).imported, 0)
  const lent = store.suggest({ event: 'prompt', prompt: 'build it', clientSession: 's', confirmMs: 1000, maxBytes: 500, context })
  assert.deepEqual(store.told('s', lent.ticket), { told: 1 })
  assert.equal(store.outcome({ command: 'make', ok: false, exitCode: 2, clientSession: 's', context }).matched.length, 1)
  // Keys inside JSON data keep their spelling.
  assert.deepEqual(store.set('api', 'data', { type: 'json', data: { maxBytes: 1, max_bytes: 2 } }).hint.value.data, { maxBytes: 1, max_bytes: 2 })
})

test('what is found, and a store, show themselves', () => {
  const store = new Store()
  assert.equal(inspect(store), 'Store { 0 hints }')
  store.set('api', 'build', 'make')
  const found = store.get('api', 'build')
  assert.deepEqual([found.component, found.key], ['api', 'build'])
  assert.equal(inspect(found, { breakLength: Infinity }), "Match { component: 'api', key: 'build', value: 'make', score: 0.3, reasons: [ 'no scope: applies everywhere' ] }")
  assert.equal(inspect(store), 'Store { 1 hint }')
  store.close()
  assert.equal(inspect(store), 'Store { closed }')
})

test('a store has a size and is gone over', () => {
  const store = new Store({ max_hints_per_component: 2000 })
  assert.deepEqual([store.size, [...store]], [0, []])
  store.set('web', 'build', 'npm run build')
  store.set('api', 'build', 'make dev', { scope: { branch: 'dev' } })
  store.set('api', 'build', 'make')
  store.set('api', 'token', 'open sesame', { sensitivity: 'secret' })
  const seen = Array.from(store, ({ component, key, value }) => `${component}/${key}: ${value}`)
  assert.deepEqual(seen, ['api/build: make', 'api/build: make dev', 'api/token: [secret]', 'web/build: npm run build'])
  for (const { key } of store) store.set('more', key, 'v')
  assert.equal(store.size, 6)
  store.import({ components: { many: { hints: Object.fromEntries(Array.from({ length: 1500 }, (_, at) => [`k${at}`, 'v'])) } } })
  assert.deepEqual([[...store].length, store.size], [1506, 1506])
  store.close()
  assert.throws(() => store.size, { code: 'E_UNAVAILABLE' })
  assert.throws(() => [...store], { code: 'E_UNAVAILABLE' })
})

test('a context and a scope may name systems as Node and people do', () => {
  const store = new Store()
  store.set('api', 'build', 'make', { scope: { os: ['macos', 'win32'] } })
  assert.deepEqual(store.query({ context: { os: 'darwin' } }).hints[0].hint.meta.scope, { os: ['darwin', 'windows'] })
  for (const os of ['macos', 'darwin', 'win32', 'windows']) {
    assert.equal(store.get('api', 'build', { os }).value, 'make')
    assert.equal(store.bump('api', 'build', { context: { os } }).hint.component, 'api')
  }
  assert.equal(store.get('api', 'build', { os: 'linux' }), null)
})

test('texts of all five kinds of values', () => {
  const store = new Store()
  const text = (value) => {
    store.set('a', 'k', value)
    return [store.get('a', 'k').text, store.get('a', 'k', {}, { variant: '' }).text]
  }
  assert.deepEqual(text('x'), ['x', 'x'])
  assert.deepEqual(text({ type: 'command', cmd: 'make' }), ['make', 'make'])
  assert.deepEqual(text({ type: 'path', abs: '/a/b/' }), ['/a/b', '/a/b'])
  assert.deepEqual(text({ type: 'template', format: 'mustache', body: '{{x}}' }), ['{{x}}', '{{x}}'])
  assert.deepEqual(text({ type: 'json', data: { b: 1, a: [2] } }), ['{"b":1,"a":[2]}', '{"b":1,"a":[2]}'])
})

test('a secret is given in full, and shown to nobody', () => {
  const store = new Store()
  store.set('db', 'password', 'correct horse', { sensitivity: 'secret' })
  const found = store.get('db', 'password')
  assert.deepEqual([found.value, found.text, found.hint.value], ['correct horse', 'correct horse', 'correct horse'])
  assert.equal(JSON.parse(JSON.stringify(found)).value, 'correct horse')
  for (const shown of [found, found.hint, [found], store, store.query(), store.delete('db', 'password')]) {
    assert(!inspect(shown, { depth: 9, showHidden: true }).includes('correct horse'))
  }
})

test('settings are those of Config', () => {
  assert.deepEqual(new Store({ max_hints: 3, max_bytes: 5000, max_components: 2, max_hints_per_component: 1 }).status().limits, {
    components: 2,
    hints_per_component: 1,
    hints: 3,
    bytes: 5000
  })
  assert.equal(new Store({ default_ttl: 'PT1H' }).set('a', 'k', 'v').hint.meta.ttl, 'PT1H')
  const looks_secret = ['AKIA', 'IOSFODNN7EXAMPLE'].join('')
  assert.throws(() => new Store().set('a', 'k', looks_secret), { code: 'E_SECRET_REJECTED' })
  new Store({ secret_guard: false }).set('a', 'k', looks_secret)
  process.env.NUDGE_MAX_HINTS = '7'
  try {
    assert.equal(new Store().status().limits.hints, 5000)
    assert.equal(new Store({ from_env: true }).status().limits.hints, 7)
    assert.equal(new Store({ from_env: true, max_hints: 9 }).status().limits.hints, 9)
    process.env.NUDGE_MAX_HINTS = 'many'
    assert.throws(() => new Store({ from_env: true }), { code: 'E_INVALID', message: /NUDGE_MAX_HINTS/ })
  } finally {
    delete process.env.NUDGE_MAX_HINTS
  }
})

test('rows of suggest and recall are of any source', () => {
  const store = new Store()
  store.set('api', 'build', 'make api')
  const { suggestions } = store.suggest({ event: 'prompt', prompt: 'build it' })
  const { items, omitted } = store.recall('how do I build it?', { limit: 5, max_bytes: 500, sources: ['hints'], context: { os: 'macos' } })
  assert.deepEqual([suggestions.length, items.length, omitted], [1, 1, 0])
  for (const row of [suggestions[0], items[0]]) {
    assert.deepEqual(Object.keys(row).sort(), fields('Suggestion'))
    assert.deepEqual([row.source, row.name, row.hint.value], ['hints', 'api/build', 'make api'])
    assert.equal(store.call(row.more.method, row.more.params).hint.value, 'make api')
    const sum = Object.values(row.match_explain.parts).reduce((all, part) => all + part, 0)
    assert(Math.abs(sum - row.match_explain.score) < 1e-3)
  }
  assert.throws(() => store.recall('x', { query: 'y' }), { code: 'E_INVALID' })
  assert.deepEqual(store.recall('how do I build it?', { max_bytes: 1 }).held_back, [{ source: 'hints', count: 1 }])
})

test('a kind of error that only a newer server knows keeps what that said', () => {
  const { ask } = require('../lib/error.js')
  const object = { code: 41801, message: 'Put the kettle on.', data: { reason: 'E_TEAPOT', more: 1 } }
  const refused = () => {
    throw new Error(JSON.stringify(object))
  }
  assert.throws(() => ask(refused), (error) => {
    assert(error instanceof NudgeError)
    assert.deepEqual([error.code, error.rpcCode, error.message, error.data], ['E_TEAPOT', 41801, object.message, object.data])
    return true
  })
})

test('an error is an Error', () => {
  const error = new NudgeError('E_CONFLICT', 'No.', { current_version: 3 })
  assert(error instanceof Error && Object.isFrozen(error.data))
  assert.deepEqual([error.name, error.code, error.rpcCode, error.message, error.data], ['NudgeError', 'E_CONFLICT', 40901, 'No.', { reason: 'E_CONFLICT', current_version: 3 }])
  assert.deepEqual([error.field, new NudgeError('E_INVALID', 'No.', { field: 'limit' }).field], [undefined, 'limit'])
  assert.match(error.stack, /^NudgeError: No\.\n.*surface\.test/)
})
