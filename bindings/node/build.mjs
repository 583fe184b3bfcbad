// Builds the native half and puts it here, under the name that native.js looks for: as a release, or with --debug as
// quickly as it can be had.
import { spawnSync } from 'node:child_process'
import { copyFileSync, renameSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const profile = process.argv.includes('--debug') ? [] : ['--release']
const cargo = spawnSync(
  'cargo',
  ['build', ...profile, '--locked', '--package', 'nudge-node', '--message-format', 'json-render-diagnostics'],
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

// The report names glibc's version where Node is linked with it.
const libc = process.report.getReport().header.glibcVersionRuntime ? '-gnu' : '-musl'
const suffix = { linux: libc, win32: '-msvc' }[process.platform] ?? ''
const name = `${here}nudge.${process.platform}-${process.arch}${suffix}.node`
// A process that has the old one loaded keeps it.
copyFileSync(built, `${name}.new`)
renameSync(`${name}.new`, name)
