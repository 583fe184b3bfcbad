// Tests the other sources of a session, which are properties of a connected store.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'

import { Context, Store, connect } from '../index.mjs'
import { binary, demoBinary, runtimeDir, serve } from './kit/serve.mjs'

const needs = { skip: demoBinary ? false : 'NUDGE_DEMO_BIN names no binary' }

test('a source is a property of a session, and its verbs are functions', needs, async (test) => {
  const runtime_dir = runtimeDir(test)
  await serve(runtime_dir, demoBinary)
  const store = connect({ runtime_dir })
  assert.deepEqual(store.sources(), ['demo'])
  assert.deepEqual(Object.keys(store.demo).sort(), ['add', 'get', 'hang', 'list', 'wait'])
  const note = { name: 'kettle', text: 'put the kettle on', tags: [], urgent: false }
  assert.deepEqual(store.demo.add({ name: 'kettle', text: 'put the kettle on', tags: null, urgent: undefined }), { note, count: 1 })
  const { get } = store.demo
  assert.deepEqual(get({ name: 'kettle' }), note)
  assert.deepEqual(store.demo.list(), { notes: [note] })
  assert(Object.isFrozen(store.demo) && Object.isFrozen(store.demo.list().notes[0]))
  assert.throws(() => get({ name: 'nothing' }), { name: 'NudgeError', code: 'E_NOT_FOUND' })
  assert.throws(() => get({ nmae: 'kettle' }), { code: 'E_INVALID' })
  assert.throws(() => get('kettle'), { code: 'E_INVALID' })
  assert.throws(() => get({ name: 'kettle', context: new Context({ cwd: '/work' }) }), { code: 'E_INVALID' })
  // A digest has the offers of the source next to the hints, with the source's own parts.
  store.set('kettle', 'boil', 'kettle --boil')
  const rows = new Map(store.recall('where is the kettle?').items.map((row) => [row.source, row]))
  assert.deepEqual([...rows.keys()].sort(), ['demo', 'hints'])
  assert.deepEqual(Object.keys(rows.get('demo').match_explain.parts), ['note', 'word'])
  assert.deepEqual(rows.get('demo').note, note)
  assert.equal(inspect(store), 'Store { session }')
  assert.deepEqual(Object.keys(store), [])
  store.close()
  assert.throws(() => get({ name: 'kettle' }), { code: 'E_UNAVAILABLE' })
  assert.throws(() => store.sources(), { code: 'E_UNAVAILABLE' })
})

test('a store of this process has hints alone', () => {
  const store = new Store()
  assert.deepEqual([store.sources(), store.demo], [[], undefined])
})

test('a promotion may bring others', { skip: binary ? needs.skip : 'NUDGE_BIN names no binary' }, async (test) => {
  const runtime_dir = runtimeDir(test)
  const first = await serve(runtime_dir)
  const store = connect({ runtime_dir })
  assert.deepEqual([store.sources(), store.demo], [['signals', 'records', 'code', 'brain'], undefined])
  await first.kill()
  const second = await serve(runtime_dir, demoBinary)
  assert.deepEqual(store.sources(), ['demo'])
  assert.deepEqual(store.demo.list(), { notes: [] })
  await second.kill()
  // If the session does not answer, the store keeps the sources that it has.
  assert.throws(() => store.sources(), { code: 'E_UNAVAILABLE' })
  assert(store.demo)
  await serve(runtime_dir)
  assert.deepEqual([store.sources(), store.demo], [['signals', 'records', 'code', 'brain'], undefined])
})
