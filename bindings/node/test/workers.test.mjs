// Tests a store that the threads of a process share by name.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'

import { Context, Store } from '../index.mjs'

const module = new URL('../index.mjs', import.meta.url).href
const seconds = Number(process.env.NUDGE_HAMMER_SECONDS || 5)

/** Waits for the end of a worker. Returns its last message. */
function run(worker) {
  return new Promise((resolve, reject) => {
    let said
    worker.on('message', (message) => (said = message))
    worker.on('error', reject)
    worker.on('exit', (code) => (code === 0 ? resolve(said) : reject(new Error(`exit ${code}`))))
  })
}

const inline = (body, workerData) =>
  run(new Worker(`import(${JSON.stringify(module)}).then(({ Store, Context, NudgeError }) => {
    const { parentPort, workerData } = require('node:worker_threads')
    const say = (value) => parentPort.postMessage(value)
    ${body}
  })`, { eval: true, workerData }))

test('a worker sees what another thread has stored, and the other way round', async () => {
  const store = new Store({ name: 'shared', max_hints: 9 })
  store.set('api', 'build', 'make', { scope: { branch: 'dev' } })
  const seen = await inline(`
    const store = new Store({ name: 'shared' })
    store.set('api', 'test', 'make test')
    say([store.get('api', 'build', new Context({ branch: 'dev' })), store.status().limits.hints])
  `)
  assert.equal(seen[0].value, 'make')
  assert.equal(seen[1], 9)
  assert.equal(store.get('api', 'test').value, 'make test')
  assert.equal(new Store().get('api', 'test'), null, 'a store without a name is its own')
  new Store({ name: 'shared', max_hints: 9 })
  assert.throws(() => new Store({ name: 'shared', max_hints: 8 }), { code: 'E_INVALID', message: /other settings/ })
})

test('a named store outlives whoever has made it, and ends when it is forgotten', async () => {
  await inline(`new Store({ name: 'left' }).set('api', 'build', 'make')`)
  const store = new Store({ name: 'left' })
  assert.equal(store.get('api', 'build').value, 'make')
  store.close()
  const again = new Store({ name: 'left' })
  assert.equal(again.get('api', 'build').value, 'make')
  assert.equal(Store.forget('left'), true)
  assert.equal(Store.forget('left'), false)
  assert.equal(again.get('api', 'build').value, 'make', 'who has it open keeps it')
  assert.equal(new Store({ name: 'left' }).get('api', 'build'), null)
})

test('a named store stays when no thread is left that has loaded the package', () => {
  // When the worker ends, Node unloads libraries that only workers have loaded.
  const script = `
    import { Worker } from 'node:worker_threads'
    const run = (body) => new Promise((resolve, reject) => {
      const code = 'import(' + JSON.stringify(${JSON.stringify(module)}) + ').then(({ Store }) => { const store = new Store({ name: "n" }); ' + body + ' })'
      new Worker(code, { eval: true }).on('exit', resolve).on('error', reject)
    })
    await run('store.set("api", "build", "make")')
    await run('console.log(store.get("api", "build").value)')
  `
  assert.equal(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }), 'make\n')
})

test('threads look where they are while another sets variables', () => {
  // If native code reads the environment while a thread writes it, the process may die.
  const script = `
    import { Worker } from 'node:worker_threads'
    import ${JSON.stringify(module)}
    const body = 'import(' + JSON.stringify(${JSON.stringify(module)}) + ').then(({ Context }) => { for (let at = 0; at < 3000; at++) Context.detect({ cwd: "/", env: null }) })'
    let running = 2
    for (let at = 0; at < 2; at++) new Worker(body, { eval: true }).on('exit', (code) => { running -= 1; if (code) process.exitCode = code })
    let last = 0
    const write = () => {
      for (let at = 0; at < 500; at++) process.env['N' + last++] = 'x'.repeat(at)
      if (running) setImmediate(write)
    }
    write()
  `
  const { status, signal, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  assert.deepEqual([status, signal], [0, null], stderr)
})

test('a thread sees the variables that are its own', async () => {
  const home = mkdtempSync(join(tmpdir(), 'nudge-node-'))
  try {
    mkdirSync(join(home, '.git', 'refs'), { recursive: true })
    mkdirSync(join(home, '.git', 'objects'))
    writeFileSync(join(home, '.git', 'HEAD'), 'ref: refs/heads/dev\n')
    writeFileSync(join(home, '.git', 'config'), '[core]\n\trepositoryformatversion = 0\n')
    const elsewhere = `
      const repo = () => typeof Context.detect({ cwd: workerData }).repo
      const before = repo()
      process.env.GIT_DIR = '/elsewhere'
      say([before, repo()])`
    assert.deepEqual(await inline(elsewhere, home), ['string', 'undefined'])
    assert.equal(typeof Context.detect({ cwd: home }).repo, 'string')
  } finally {
    rmSync(home, { recursive: true })
  }
})

test('threads hammer one store', { timeout: (seconds + 120) * 1000 }, async (context) => {
  const name = 'hammered'
  const store = new Store({ name })
  store.set('counted', 'number', '0')
  store.set('counted', 'uses', 'x')
  store.set('shared', 'k0', 'thread 0, step 0')
  // All threads try to undo this deletion.
  store.set('any', 'k', 'make it')
  store.delete('any', 'k')
  const until = Date.now() + seconds * 1000
  const threads = 4
  const start = (me) => run(new Worker(new URL('kit/hammer.mjs', import.meta.url), { workerData: { name, me, until } }))
  const reports = await Promise.all(Array.from({ length: threads }, (_, me) => start(me)))
  const sum = (field) => reports.reduce((all, report) => all + report[field], 0)
  assert.equal(store.get('counted', 'uses').hint.use_count, sum('bumped'), 'no bump is lost')
  assert.equal(Number(store.get('counted', 'number').value), sum('counted'), 'no update is lost')
  assert.equal(store.get('counted', 'number').version, sum('counted') + 1)
  for (const report of reports) assert(report.found > 0 && report.counted > 0)
  context.diagnostic(`${threads} threads, ${seconds} s: ${sum('calls')} calls, ${sum('found')} found, ${sum('counted')} counted, ${sum('conflicts')} conflicts`)
})

test('a worker that is ended in the middle takes nothing with it', async () => {
  const store = new Store({ name: 'ended' })
  store.set('shared', 'k0', 'thread 0, step 0')
  store.set('counted', 'number', '0')
  store.set('counted', 'uses', 'x')
  for (let round = 0; round < 5; round++) {
    const worker = new Worker(new URL('kit/hammer.mjs', import.meta.url), { workerData: { name: 'ended', me: round, until: Date.now() + 60_000 } })
    const uses = store.get('counted', 'uses').hint.use_count ?? 0
    while ((store.get('counted', 'uses').hint.use_count ?? 0) < uses + 20) await new Promise(setImmediate)
    await worker.terminate()
  }
  assert.equal(store.set('shared', 'k0', 'thread 9, step 9').hint.value, 'thread 9, step 9')
  assert(store.query().hints.length > 0)
})
