// Makes the published npm packages: node pack.mjs OUT [FOLDER]
//
// FOLDER, by default the folder of this script, has the results of `npm run build` on each platform
// (nudge.PLATFORM.node). For each of them, OUT gets a package nudge-hints-PLATFORM-VERSION.tgz. OUT also gets
// nudge-hints-VERSION.tgz, which has no binary: it names the packages of all platforms as optional, and npm installs
// the package for the machine. The installation runs no script.
import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The platforms that get a package, with the properties that npm compares with the machine. */
const PLATFORMS = {
  'darwin-arm64': { os: ['darwin'], cpu: ['arm64'] },
  'darwin-x64': { os: ['darwin'], cpu: ['x64'] },
  'linux-arm64-gnu': { os: ['linux'], cpu: ['arm64'], libc: ['glibc'] },
  'linux-arm64-musl': { os: ['linux'], cpu: ['arm64'], libc: ['musl'] },
  'linux-x64-gnu': { os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
  'linux-x64-musl': { os: ['linux'], cpu: ['x64'], libc: ['musl'] },
  'win32-arm64-msvc': { os: ['win32'], cpu: ['arm64'] },
  'win32-x64-msvc': { os: ['win32'], cpu: ['x64'] }
}

const here = fileURLToPath(new URL('.', import.meta.url))
const [out, folder = here] = process.argv.slice(2)
if (out === undefined) throw new Error('Say where the packages are to be put: node pack.mjs OUT [FOLDER]')
const { devDependencies, scripts, files, ...package_ } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
const { version, license, repository, engines } = package_

/** Packs files, given by their paths, with a description. */
function pack(description, paths) {
  const stage = mkdtempSync(join(tmpdir(), 'nudge-pack-'))
  try {
    for (const path of paths) cpSync(path, join(stage, basename(path)), { recursive: true })
    for (const name of ['LICENSE-MIT', 'LICENSE-APACHE']) copyFileSync(join(here, '../..', name), join(stage, name))
    writeFileSync(join(stage, 'package.json'), `${JSON.stringify(description, null, 2)}\n`)
    mkdirSync(out, { recursive: true })
    const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
    const packed = spawnSync(npm, ['pack', '--silent', '--pack-destination', resolve(out)], {
      cwd: stage,
      encoding: 'utf8',
      shell: process.platform === 'win32',
      stdio: ['ignore', 'pipe', 'inherit']
    })
    if (packed.status !== 0) throw new Error(`npm pack failed for ${description.name}`, { cause: packed.error })
    console.log(join(out, packed.stdout.trim().split('\n').at(-1)))
  } finally {
    rmSync(stage, { recursive: true })
  }
}

const built = readdirSync(folder).filter((name) => name.endsWith('.node'))
if (built.length === 0) throw new Error(`There is no binary in ${folder}; make one with \`npm run build\`.`)
for (const file of built) {
  const platform = file.slice('nudge.'.length, -'.node'.length)
  if (!(platform in PLATFORMS)) throw new Error(`${file} is for none of: ${Object.keys(PLATFORMS).join(', ')}`)
  const description = `The binary of nudge-hints for ${platform}`
  pack(
    { name: `nudge-hints-${platform}`, version, description, license, repository, engines, main: file, files: [file], ...PLATFORMS[platform] },
    [join(folder, file)]
  )
}
const sources = files.filter((name) => name !== '*.node' && !name.startsWith('LICENSE-'))
const optionalDependencies = Object.fromEntries(Object.keys(PLATFORMS).map((name) => [`nudge-hints-${name}`, version]))
pack({ ...package_, files: sources, optionalDependencies }, [...sources, 'README.md'].map((name) => join(here, name)))
