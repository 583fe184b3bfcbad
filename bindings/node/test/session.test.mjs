// Tests `connect()`: the methods have the same interface on a real `nudge serve`.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'

import { AsyncStore, Context, NudgeError, Store, connect, promises } from '../index.mjs'
import { binary, endAfterTest, runtimeDir, serve } from './kit/serve.mjs'

const needs = { skip: binary ? false : 'NUDGE_BIN names no binary' }

test('no server runs', (test) => {
  const runtime_dir = runtimeDir(test)
  const why = { name: 'NudgeError', code: 'E_UNAVAILABLE', rpcCode: 50301, message: 'No Nudge server is running; start one with `nudge serve --detach`.' }
  assert.throws(() => connect({ runtime_dir }), why)
  process.env.NUDGE_RUNTIME_DIR = runtime_dir
  try {
    assert.throws(() => connect(), why)
    assert.throws(() => connect({ runtime_dir: null }), why)
    process.env.NUDGE_RUNTIME_DIR = join(tmpdir(), 'a\ud800b')
    assert.throws(() => connect(), { code: 'E_UNAVAILABLE' })
  } finally {
    delete process.env.NUDGE_RUNTIME_DIR
  }
  assert.throws(() => connect({ runtime_dir: join(tmpdir(), 'a\0b') }), NudgeError)
})

test('promises answer as a session does, and the event loop goes on', needs, async (test) => {
  const runtime_dir = runtimeDir(test)
  await assert.rejects(promises.connect({ runtime_dir }), { code: 'E_UNAVAILABLE' })
  await assert.rejects(promises.connect({ runtimeDirs: 'x' }), { code: 'E_INVALID' })
  await serve(runtime_dir)
  const [session, later] = [connect({ runtime_dir }), await promises.connect({ runtime_dir, name: 'later' })]
  assert(later instanceof AsyncStore)
  const stored = await later.set('api', 'build', 'make', { ttl: '2h', scope: { branch: 'dev' } })
  assert.equal(stored.hint.meta.ttl, 'PT2H')
  const dev = new Context({ branch: 'dev' })
  for (const context of [dev, { branch: 'dev' }, { branch: 'main' }, undefined]) {
    assert.deepEqual(await later.get('api', 'build', context), session.get('api', 'build', context))
    assert.deepEqual((await later.query({ context })).hints, session.query({ context }).hints)
  }
  assert.equal(await later.size, 1)
  assert.equal(JSON.parse(await later.callJson('nudge.status', '{}')).hints, 1)
  assert.deepEqual(await later.sources(), session.sources())
  assert.deepEqual(await later.records.search({ query: 'x' }), session.records.search({ query: 'x' }))
  // Every error rejects the promise, even an error in the arguments.
  await assert.rejects(later.set('api', 'build', 'x', { tag: 'y' }), { name: 'NudgeError', code: 'E_INVALID' })
  await assert.rejects(later.call('nudge.nothing'), { name: 'NudgeError' })
  await assert.rejects(later.records.search({}), { name: 'NudgeError', code: 'E_INVALID' })
  let ticks = 0
  const ticking = setInterval(() => { ticks += 1 }, 0)
  for (let call = 0; call < 50; call += 1) await later.get('api', 'build', dev)
  clearInterval(ticking)
  assert(ticks > 0, 'the event loop stood still')
  const underWay = later.get('api', 'build', dev)
  later.close()
  assert.equal((await underWay).text, 'make')
  await assert.rejects(later.status(), { code: 'E_UNAVAILABLE' })
  session.close()
})

test('a session answers as a store does', needs, async (test) => {
  const runtime_dir = runtimeDir(test)
  await serve(runtime_dir)
  const session = connect({ runtime_dir, name: 'the test' })
  assert(session instanceof Store)
  const store = new Store()
  const dev = new Context({ branch: 'dev', cwd: '/work/api', files_open: ['src/api/x.js'] })
  /** Returns both answers without times, and without the reason why a hint is not kept. */
  const both = (call) => {
    const [mine, theirs] = [store, session].map((one) => {
      try {
        return call(one)
      } catch (error) {
        assert(error instanceof NudgeError, error.stack)
        return { code: error.code, rpcCode: error.rpcCode, message: error.message, data: error.data }
      }
    })
    const plain = (value) => JSON.parse(JSON.stringify(value), (name, field) => (name.endsWith('_at') || ['at', 'by', 'session_id', 'keeping'].includes(name) ? undefined : field))
    assert.deepEqual(plain(theirs), plain(mine))
    return theirs
  }
  both((one) => one.set('api', 'build', 'make', { tags: ['x'], ttl: 'PT2H', priority: 8 }))
  both((one) => one.set('api', 'build', { type: 'command', cmd: 'make dev' }, { scope: { branch: 'dev', os: ['macos', 'linux'] } }))
  assert.equal(both((one) => one.get('api', 'build', { branch: 'dev', os: 'macos' })).text, 'make dev')
  for (const context of [undefined, null, {}, dev, { branch: 'dev' }, { branch: 'main', os: 'linux' }]) {
    both((one) => one.get('api', 'build', context))
    both((one) => one.get('api', 'build', context, { variant: '' }))
    both((one) => one.get('api', 'nothing', context))
    both((one) => one.query({ context, include_ineligible: true }))
    both((one) => one.why('api', 'build', context))
  }
  assert(Object.isFrozen(session.get('api', 'build')))
  both((one) => one.bump('api', 'build', { context: dev }))
  both((one) => one.bump('api', 'build'))
  both((one) => one.outcome({ command: 'make', ok: false, exit_code: 127, context: dev }))
  both((one) => one.suggest({ event: 'start', context: dev }))
  both((one) => one.envNames())
  both((one) => one.listComponents())
  both((one) => one.import({ components: { web: { hints: { run: 'npm start' } } } }, { mode: 'merge' }))
  both((one) => one.export())
  both((one) => one.delete('web', 'run'))
  assert.equal(session.deletions().deletions[0].by, 'the test')
  both((one) => one.undo())
  both((one) => one.get('', 'build'))
  both((one) => one.get('api', 'x'.repeat(257)))
  both((one) => one.get(1, 'x'))
  both((one) => one.set('api', 'build', 'x', { if_match_version: 99 }))
  both((one) => one.call('nudge.no_such_method'))
  for (const params of [[], null, 1, 'x']) both((one) => one.call('nudge.status', params))
  for (const params of ['[]', 'null', '', '{', ' {}']) both((one) => one.callJson('nudge.list_components', params))
  for (const context of [undefined, null, {}, new Context()]) both((one) => one.bump('api', 'build', { context }))
  // A plain context and a `Context` must give the same error for a hint that does not fit.
  both((one) => one.set('env', 'build', 'make', { scope: { env_required: ['NUDGE_TEST_CI'], branch: 'dev' } }))
  for (const spec of [{}, { branch: 'dev' }, { branch: 'dev', env: { OTHER: 'x' } }, { branch: 'dev', env: { NUDGE_TEST_CI: null } }, { env: { OTHER: 'x' } }, { cwd: '/a', env: {} }]) {
    const told = [spec, new Context(spec)].map((context) => both((one) => one.call('nudge.get_hint', { component: 'env', key: 'build', context })))
    assert.equal(told[0].code, 'E_NOT_FOUND')
    assert.deepEqual(told[1], told[0], JSON.stringify(spec))
  }
  assert.equal(session.status().role, 'PRIMARY')
  session.close()
  assert.throws(() => session.get('api', 'build'), { code: 'E_UNAVAILABLE', message: /closed/ })
})

test('of the environment a session is told what scopes mention', needs, async (test) => {
  const runtime_dir = runtimeDir(test)
  await serve(runtime_dir)
  const session = connect({ runtime_dir })
  session.set('api', 'build', 'make staging', { scope: { env_match: { NUDGE_TEST_STAGE: ['staging', 'prod'] } } })
  session.set('api', 'test', 'make test', { scope: { env_required: ['NUDGE_TEST_CI'] } })
  assert.equal(session.get('api', 'build', Context.detect()), null)
  process.env.NUDGE_TEST_STAGE = 'staging'
  process.env.NUDGE_TEST_CI = 'true'
  try {
    const here = Context.detect()
    assert.equal(session.get('api', 'build', here).value, 'make staging')
    assert.equal(session.get('api', 'test', here).value, 'make test')
    assert.equal(session.query({ context: here }).hints.length, 2)
    assert.equal(session.bump('api', 'build', { context: here }).hint.use_count, 1)
    session.set('api', 'run', 'make run', { scope: { env_match: { NUDGE_TEST_CI: 'true' } } })
    assert.equal(session.get('api', 'run', here).value, 'make run')
    const given = { env: { NUDGE_TEST_STAGE: 'prod' } }
    assert.equal(session.get('api', 'build', given).value, 'make staging')
    assert.equal(session.get('api', 'build', new Context(given)).value, 'make staging')
    assert.equal(session.get('api', 'build', { env: { NUDGE_TEST_STAGE: 'dev' } }), null)
  } finally {
    delete process.env.NUDGE_TEST_STAGE
    delete process.env.NUDGE_TEST_CI
  }
})

test('a thread finds the session that its own variables name', needs, async (test) => {
  const runtime_dir = runtimeDir(test)
  await serve(runtime_dir)
  const module = new URL('../index.mjs', import.meta.url).href
  const body = `import(${JSON.stringify(module)}).then(({ connect }) => connect().set('api', 'k', 'v'))`
  const worker = new Worker(body, { eval: true, env: { ...process.env, NUDGE_RUNTIME_DIR: runtime_dir } })
  const code = await new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject))
  assert.equal(code, 0)
  assert.equal(connect({ runtime_dir }).get('api', 'k').value, 'v')
})

test('a server that is killed, and the next', needs, async (test) => {
  const runtime_dir = runtimeDir(test)
  const first = await serve(runtime_dir)
  const session = connect({ runtime_dir })
  session.set('api', 'build', 'make')
  await first.kill()
  assert.throws(() => session.get('api', 'build'), { code: 'E_UNAVAILABLE' })
  await serve(runtime_dir)
  assert.equal(session.get('api', 'build'), null, 'another session began')
  session.set('api', 'build', 'make again')
  assert.equal(session.get('api', 'build').value, 'make again')
})

test('a server that is killed while another of the session lives', needs, async (test) => {
  const runtime_dir = runtimeDir(test)
  const first = await serve(runtime_dir)
  const session = connect({ runtime_dir })
  session.set('api', 'build', 'make')
  const { spawn } = await import('node:child_process')
  const { once } = await import('node:events')
  const proxy = spawn(binary, ['serve'], { env: { ...process.env, NUDGE_RUNTIME_DIR: runtime_dir }, stdio: ['pipe', 'pipe', 'ignore'] })
  endAfterTest(runtime_dir, proxy)
  proxy.stdin.write('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}\n')
  await once(proxy.stdout, 'data')
  await first.kill()
  assert.equal(session.get('api', 'build').value, 'make')
})

test('a worker may end with a session open', needs, async (test) => {
  const runtime_dir = runtimeDir(test)
  await serve(runtime_dir)
  const module = new URL('../index.mjs', import.meta.url).href
  for (let round = 0; round < 3; round++) {
    const worker = new Worker(`import(${JSON.stringify(module)}).then(({ connect }) => connect({ runtime_dir: ${JSON.stringify(runtime_dir)} }).set('api', 'k', 'v'))`, { eval: true })
    const code = await new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject))
    assert.equal(code, 0)
  }
  assert.equal(connect({ runtime_dir }).get('api', 'k').version, 3)
})

test('ctrl-c ends a program that waits for a server that says nothing', needs, async (test) => {
  const runtime_dir = runtimeDir(test)
  const { pid } = await serve(runtime_dir)
  const { spawn } = await import('node:child_process')
  const { once } = await import('node:events')
  const module = new URL('../index.mjs', import.meta.url).href
  const program = `
    import { connect } from ${JSON.stringify(module)}
    const session = connect({ runtimeDir: ${JSON.stringify(runtime_dir)} })
    console.log('ready')
    process.stdin.once('data', () => {
      console.log('calling')
      session.get('api', 'build')
      console.log('returned')
    })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const [ready] = await once(child.stdout, 'data')
  assert.equal(`${ready}`, 'ready\n')
  process.kill(pid, 'SIGSTOP')
  try {
    child.stdin.write('go on')
    const [calling] = await once(child.stdout, 'data')
    assert.equal(`${calling}`, 'calling\n')
    child.kill('SIGINT')
    assert.deepEqual(await ended, [null, 'SIGINT'])
  } finally {
    process.kill(pid, 'SIGCONT')
  }
})
