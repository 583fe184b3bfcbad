// Tests the tools for a model: their forms, their effects, and their answers.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

import { Store, Tools, connect, tools } from '../index.mjs'
import { demoBinary, runtimeDir, serve } from './kit/serve.mjs'

const native = createRequire(import.meta.url)('../native.js')
const LIST = 'nudge_list_components'

test('they are the tools of the table', { skip: 'testSchemas' in native ? false : 'needs the feature test-clock' }, () => {
  const schemas = JSON.parse(native.testSchemas())
  const all = tools()
  assert(all instanceof Tools && all.store instanceof Store)
  assert.deepEqual([all.size, all.has('nudge_get_hint'), all.has('nudge_status'), [...all]], [9, true, false, all.names])
  all.names.forEach((name, at) => {
    const schema = schemas[name.replace('_', '.')]
    const { description } = all.anthropic()[at]
    assert(description)
    assert.deepEqual(all.anthropic()[at], { name, description, input_schema: schema })
    assert.deepEqual(all.openai()[at], { type: 'function', function: { name, description, parameters: schema } })
    assert.deepEqual(all.responses()[at], { type: 'function', name, description, parameters: schema, strict: false })
  })
})

test('a model uses them where it works', () => {
  const store = new Store()
  const all = tools(store, { context: { branch: 'dev' } })
  const set = all.call('nudge_set_hint', { component: 'api', key: 'build', value: 'make', meta: { scope: { branch: 'dev' } } })
  assert.equal(set.isError, false)
  const found = all.call('nudge_get_hint', '{"component": "api", "key": "build"}')
  assert.equal(JSON.parse(found.text).hint.value, 'make')
  const elsewhere = all.call('nudge_get_hint', { component: 'api', key: 'build', context: { branch: null } })
  assert.deepEqual([elsewhere.isError, JSON.parse(elsewhere.text).code], [true, 40401])
  assert.equal(all.call(LIST).text, '{"components":[{"name":"api","hint_count":1}]}')
})

test('a refusal is an answer, a mistake of the program is not', () => {
  const store = new Store()
  const all = tools(store)
  const refused = [['nudge_get_hint', {}], ['nudge_get_hint', '{'], ['nudge_get_hint', '[]'], ['nudge_shutdown', {}], ['nudge_bump', { component: 'a', key: 'none' }], ['nudge_set_hint', { component: 'a', key: 'k', value: 'v', meta: { source: 'user' } }]]
  for (const [name, args] of refused) {
    const { isError, text } = all.call(name, args)
    assert(isError && JSON.parse(text).message, name)
  }
  assert.equal(store.size, 0)
  for (const name of [undefined, null, 5, {}]) assert.throws(() => all.call(name, {}), { code: 'E_INVALID' })
  assert.throws(() => all.call(LIST, { x: 1n }), { code: 'E_INVALID' })
  assert.throws(() => tools({}), { code: 'E_INVALID' })
  assert.throws(() => tools(store, { contxt: {} }), { code: 'E_INVALID', message: /`contxt`; did you mean `context`/ })
  store.close()
  assert.throws(() => all.call(LIST, {}), { code: 'E_UNAVAILABLE' })
})

test('what is said is answered in its form', () => {
  const all = tools()
  const content = '{"components":[]}'
  assert.deepEqual(all.answer({ type: 'tool_use', id: 't', name: LIST, input: {} }), { type: 'tool_result', tool_use_id: 't', content, is_error: false })
  const used = { name: LIST, arguments: '{}' }
  assert.deepEqual(all.answer({ type: 'function', id: 'c', function: used }), { role: 'tool', tool_call_id: 'c', content })
  assert.deepEqual(all.answer({ type: 'function_call', call_id: 'f', ...used }), { type: 'function_call_output', call_id: 'f', output: content })
  for (const other of [{ type: 'text', text: 'hi' }, { type: 'tool_use', id: 't', name: 'get_weather', input: {} }, {}, [], 'text', null, undefined]) assert.equal(all.answer(other), null)
})

test('those of a session, after what it keeps for views was forgotten', { skip: demoBinary ? false : 'NUDGE_DEMO_BIN names no binary' }, async (test) => {
  const runtimeDirectory = runtimeDir(test)
  await serve(runtimeDirectory, demoBinary)
  const session = connect({ runtimeDir: runtimeDirectory })
  session.demo.add({ name: 'a', text: 'b' })
  const all = tools(session, { context: { branch: 'dev' } })
  assert(all.has('nudge_demo_get'))
  for (let at = 0; at < 300; at++) session.get('api', 'build', { branch: `b${at}` })
  assert.equal(JSON.parse(all.call('nudge_demo_get', { name: 'a' }).text).text, 'b')
  assert.equal(session.size, 0)
  // A session offers the tools of all its sources.
  assert.match(session.digest('start').text, /\n- note a: b$/)
})
