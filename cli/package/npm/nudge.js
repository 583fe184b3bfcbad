#!/usr/bin/env node
'use strict'

// Starts the program of the package that npm chose for this machine, in the place of this process as far as Node lets
// it: the same streams, the same signals, the same exit code.
const { spawn } = require('node:child_process')

const { platform, arch } = process
const name = `nudge-hints-cli-${platform}-${arch}`
let program
try {
  program = require.resolve(`${name}/nudge${platform === 'win32' ? '.exe' : ''}`)
} catch {
  console.error(
    `nudge: there is no program for ${platform}-${arch} (${name} is not installed); install without --omit=optional, or with cargo: cargo install --locked nudge-cli`
  )
  process.exit(1)
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
child.on('error', (error) => {
  console.error(`nudge: ${program} cannot be started: ${error.message}`)
  process.exit(1)
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
})
