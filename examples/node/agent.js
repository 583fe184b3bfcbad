// Is a small agent: it looks its command up, runs it, and reports whether it worked. Build `bindings/node` first, then
// run `npm install && npm start`.
import { spawnSync } from 'node:child_process'

import { Store } from 'nudge-hints'

const store = new Store()
store.set('api', 'build', 'echo building for everybody')
store.set('api', 'build', 'echo building the dev branch', { scope: { branch: 'dev' } })
store.set('api', 'test', 'exit 3')

/** Prints the match and the reasons. */
function tell(label, found) {
  console.log(`${label}: ${found.text}`)
  console.log(`  because ${found.reasons.join(', ')}`)
}

/** Runs a command and reports its outcome, which counts for every hint with that command. */
function run(command, context) {
  const { status, stdout } = spawnSync('sh', ['-c', command], { encoding: 'utf8' })
  for (const line of stdout.split('\n').filter(Boolean)) console.log(`  ${line}`)
  store.outcome({ command, ok: status === 0, exit_code: status, context })
}

for (const branch of ['main', 'dev']) {
  const context = { branch }
  const found = store.get('api', 'build', context)
  tell(branch, found)
  run(found.text, context)
}

const main = { branch: 'main' }
for (let attempt = 0; attempt < 3; attempt++) run(store.get('api', 'test', main).text, main)
tell('test', store.get('api', 'test', main))

const { use_count } = store.get('api', 'build', { branch: 'dev' }).hint
console.log(`build was used ${use_count} ${use_count === 1 ? 'time' : 'times'} on dev`)
