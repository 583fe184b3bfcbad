// Runs a real `nudge serve` in a private runtime directory.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The path of the binary, or undefined. */
export const binary = [process.env.NUDGE_BIN].find((path) => path && existsSync(path))

/** The path of the binary with the additional source `demo`, or undefined. */
export const demoBinary = [process.env.NUDGE_DEMO_BIN].find((path) => path && existsSync(path))

/** The functions that end servers, by runtime directory. */
const endings = new Map()

/**
 * Makes a runtime directory for a test. After the test, ends the servers before it removes the directory, because they
 * would write files again.
 */
export function runtimeDir(test) {
  const home = mkdtempSync(join(tmpdir(), 'nudge-node-'))
  const runtime = join(home, 'run')
  endings.set(runtime, [])
  test.after(async () => {
    await Promise.all(endings.get(runtime).map((kill) => kill()))
    rmSync(home, { recursive: true, force: true })
  })
  return runtime
}

/** Ends a server of this runtime directory after the test. Returns the function that ends it at once. */
export function endAfterTest(runtime, child) {
  const ended = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  endings.get(runtime).push(kill)
  return kill
}

/** Waits until `probe` returns a value. */
async function until(what, probe) {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; ) {
    const found = probe()
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`waited in vain for ${what}`)
}

/** Starts a server, which ends when its stdin is closed. Resolves when the server has written its address. */
export async function serve(runtime, program = binary) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('NUDGE_')))
  const child = spawn(program, ['serve', '--port', '0'], { env: { ...env, NUDGE_RUNTIME_DIR: runtime, NUDGE_DATA_DIR: `${runtime}-data` }, stdio: ['pipe', 'ignore', 'ignore'] })
  const kill = endAfterTest(runtime, child)
  await until('the server', () => {
    try {
      return JSON.parse(readFileSync(join(runtime, 'server.pid'), 'utf8')).pid === child.pid
    } catch {
      return false
    }
  })
  return { kill, pid: child.pid }
}
