// Tests that every example of README.md prints the text in its comments. `NUDGE_NODE_PROJECT` is a project in which the
// package is installed. Without this variable, the package is this folder.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { binary, demoBinary, runtimeDir, serve } from './kit/serve.mjs'

const here = fileURLToPath(new URL('..', import.meta.url))
const blocks = [...readFileSync(join(here, 'README.md'), 'utf8').matchAll(/^```js\n([^]*?)^```/gm)].map(([, body]) => body)

function project(test) {
  if (process.env.NUDGE_NODE_PROJECT) return process.env.NUDGE_NODE_PROJECT
  const folder = mkdtempSync(join(tmpdir(), 'nudge-readme-'))
  test.after(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(here, join(folder, 'node_modules', 'nudge-hints'))
  return folder
}

test('there are examples', () => assert(blocks.length >= 5))

blocks.forEach((block, at) => {
  const needsServer = block.includes('connect(')
  const program = block.includes('.demo.') ? demoBinary : binary
  const skip = needsServer && !program ? 'NUDGE_BIN or NUDGE_DEMO_BIN names no binary' : false
  test(`example ${at + 1}`, { skip }, async (test) => {
    const expected = [...block.matchAll(/\/\/ => (.*)$/gm)].map(([, line]) => `${line}\n`).join('')
    assert(expected)
    const env = { ...process.env }
    if (needsServer) {
      env.NUDGE_RUNTIME_DIR = runtimeDir(test)
      await serve(env.NUDGE_RUNTIME_DIR, program)
    }
    const cwd = project(test)
    const file = join(cwd, `example-${at + 1}.mjs`)
    writeFileSync(file, block)
    assert.equal(execFileSync(process.execPath, [file], { cwd, env, encoding: 'utf8' }), expected)
  })
})
