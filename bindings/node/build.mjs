// Builds the native half as a release, and copies it here under the name that native.js expects. With --debug, the
// build is as fast as possible. With --target TRIPLE, the build is for another platform, if Rust can build for it here.
import { spawnSync } from 'node:child_process'
import { copyFileSync, renameSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const profile = process.argv.includes('--debug') ? [] : ['--release']
const target = process.argv.includes('--target') ? process.argv[process.argv.indexOf('--target') + 1] : undefined
const cargo = spawnSync(
  'cargo',
  ['build', ...profile, ...(target ? ['--target', target] : []), '--locked', '--package', 'nudge-node', '--message-format', 'json-render-diagnostics'],
  { cwd: here, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 1 << 28 }
)
if (cargo.error) throw new Error('Rust is needed to build nudge-hints; install it from https://rustup.rs', { cause: cargo.error })
if (cargo.status !== 0) process.exit(cargo.status ?? 1)

const built = cargo.stdout
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line))
  .filter(({ reason, target }) => reason === 'compiler-artifact' && target.name === 'nudge_node')
  .flatMap(({ filenames }) => filenames)
  .find((name) => /\.(so|dylib|dll)$/.test(name))

/**
 * Returns the name of this platform for binaries and packages. With a target, such as aarch64-unknown-linux-musl,
 * returns the name of the target's platform.
 */
function platform() {
  if (target) {
    const [cpu, , system, libc] = target.split('-')
    const arch = { x86_64: 'x64', aarch64: 'arm64' }[cpu]
    return [{ windows: 'win32' }[system] ?? system, arch, libc].filter(Boolean).join('-')
  }
  // If Node is linked with glibc, the report has the version of glibc.
  const libc = process.report.getReport().header.glibcVersionRuntime ? 'gnu' : 'musl'
  return [process.platform, process.arch, { linux: libc, win32: 'msvc' }[process.platform]].filter(Boolean).join('-')
}

const name = `${here}nudge.${platform()}.node`
// The rename keeps the old file for processes that have loaded it.
copyFileSync(built, `${name}.new`)
renameSync(`${name}.new`, name)
