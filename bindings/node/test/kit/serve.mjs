// A real `nudge serve` in a private runtime directory.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The binary, or undefined. */
export const binary = [process.env.NUDGE_BIN].find((path) => path && existsSync(path))

/** The same with one source more, `demo`, or undefined. */
export const demoBinary = [process.env.NUDGE_DEMO_BIN].find((path) => path && existsSync(path))

/** How to end each server, by runtime directory. */
const endings = new Map()

/** A folder for a runtime directory, gone with the test. Its servers end first: they would put their files back. */
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

/** Waits until `probe` gives something. */
async function until(what, probe) {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; ) {
    const found = probe()
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`waited in vain for ${what}`)
}

/** Starts one that lives until its stdin is closed; resolves when it says where it is. */
export async function serve(runtime, program = binary) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('NUDGE_')))
  const child = spawn(program, ['serve', '--port', '0'], { env: { ...env, NUDGE_RUNTIME_DIR: runtime, NUDGE_DATA_DIR: `${runtime}-data` }, stdio: ['pipe', 'ignore', 'ignore'] })
  const ended = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  endings.get(runtime).push(kill)
  await until('the server', () => {
    try {
      return JSON.parse(readFileSync(join(runtime, 'server.pid'), 'utf8')).pid === child.pid
    } catch {
      return false
    }
  })
  return { kill, pid: child.pid }
}
