// What compiles and what must not; `npm run types` reads it, nothing runs it.
import { Context, NudgeError, Store, Tools, connect, errorCodes, methods, tools } from 'nudge-hints'
import type { ErrorCode, Hint, Json, Match, Method, Options, Os, QueryParams, Scope, Value } from 'nudge-hints'

/** Both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(_: Same<A, B>): void => {}

using store = new Store({ name: 'x', max_hints: 10, secret_guard: false, default_ttl: 'PT2H', from_env: true })
const session: Store = connect({ runtime_dir: '/run/nudge', name: 'editor' })
const here = new Context({ cwd: '/work', repo: null, branch: 'dev', os: 'macos', env: { CI: '1', GONE: null }, files_open: ['a'] })

const found = store.get('api', 'build', here)
same<typeof found, Match | null>(true)
// @ts-expect-error it may be null
found.value
if (found) {
  same<typeof found.component, string>(true)
  same<typeof found.value, Value>(true)
  same<typeof found.score, number>(true)
  same<typeof found.reasons, readonly string[]>(true)
  same<typeof found.hint, Hint>(true)
  same<typeof found.parts.files_open, number | undefined>(true)
  if (typeof found.value !== 'string' && found.value.type === 'command') found.value.cmd.toUpperCase()
  // @ts-expect-error results are frozen
  found.score = 1
  // @ts-expect-error deeply
  found.reasons.push('x')
}
store.get('api', 'build')
store.get('api', 'build', { branch: 'dev' }, { variant: '' })
// @ts-expect-error a key is a string
store.get('api', 1)
// @ts-expect-error a misspelt field
store.get('api', 'build', { brnach: 'dev' })

const scope: Scope = { cwd_glob: ['/a/**'], repo: 'org/repo', branch: 'dev', os: ['linux', 'macos'], env_required: ['CI'], env_match: { STAGE: ['a', 'b'] } }
const stored = store.set('api', 'build', { type: 'command', cmd: 'make', shell: 'bash' }, { tags: ['x'], ttl: 'session', scope, priority: 8, sensitivity: 'normal', source: 'agent', if_match_version: 0 })
same<typeof stored.variants, number>(true)
same<typeof stored.hint.meta.ttl, string>(true)
store.set('api', 'data', { type: 'json', data: { list: [1, null, { x: true }] } })
store.set('api', 'dir', { type: 'path', abs: '/a', os: ['linux', 'macos'] })
// @ts-expect-error a list, unlike a scope's
store.set('api', 'dir', { type: 'path', abs: '/a', os: 'linux' })
// @ts-expect-error no such kind of value
store.set('api', 'build', { type: 'commnad', cmd: 'make' })
// @ts-expect-error a misspelt option
store.set('api', 'build', 'make', { tagz: [] })
// @ts-expect-error a union of strings
store.set('api', 'build', 'make', { sensitivity: 'hidden' })

// As JavaScript names things.
const camel: Scope | Options<Scope> = { cwdGlob: '/a/**', envRequired: 'CI', envMatch: { STAGE_NAME: 'x' } }
store.set('api', 'build', 'make', { allowSecret: true, ifMatchVersion: 0, addedBy: 'me', scope: camel })
store.get('api', 'build', { cwd: '/a', filesOpen: ['x'] })
store.query({ includeIneligible: true, context: new Context({ filesOpen: [] }) })
new Store({ maxHintsPerComponent: 5, defaultTtl: 'PT1H' })
connect({ runtimeDir: '/run/nudge' })
same<string, ReturnType<Store['digest']>['text']>(true)
store.digest('start', { clientSession: 's', maxBytes: 500, context: here }).ticket?.length
// @ts-expect-error a misspelt option
store.set('api', 'build', 'make', { allowSecert: true })
// @ts-expect-error no such event
store.digest('end')
store.size.toFixed()
for (const { component, key, meta } of store) [component, key, meta.ttl]
same<typeof store extends Iterable<Hint> ? true : false, true>(true)
const all = tools(store, { context: { branch: 'dev' } })
all.call('nudge_get_hint', { component: 'api', key: 'build' }).text.length
same<ReturnType<typeof all.anthropic>[number]['input_schema']['type'], 'object'>(true)
same<typeof all.names, readonly string[]>(true)
all.answer({ type: 'tool_use', id: 't', name: 'nudge_query', input: {} })?.tool_use_id.length
// @ts-expect-error made by tools()
new Tools()

const params: QueryParams = { component: 'api', keys: ['build'], tags: ['x'], regex: 'b', context: here, limit: 5, include_ineligible: true }
for (const { hint, score, match_explain } of store.query(params).hints) [hint.key, score, match_explain.matched]
same<ReturnType<Store['bump']>, { readonly hint: Hint }>(true)
store.bump('api', 'build', { delta: 2, context: here })
store.delete('api', 'build', { all: true }).deleted_count.toFixed()
store.import(store.export({ include_secrets: true }).payload, { mode: 'replace' }).errors[0]?.reason satisfies ErrorCode | undefined
store.suggest({ event: 'failure', command: 'make', error: 'x', context: here }).suggestions[0]?.why.length
const lent = store.suggest({ event: 'start', client_session: 's', confirm_ms: 100 })
store.told('s', lent.ticket ?? '').told.toFixed()
same<Parameters<Store['recall']>[0], string>(true)
const recalled = store.recall('how do I build it?', { context: here, limit: 3, max_bytes: 500, sources: ['hints'] })
for (const { source, name, line, why, match_explain, more, hint } of recalled.items) {
  ;[source, name, line, why, more.method, more.params['key'], match_explain.parts.words?.toFixed()]
  same<typeof hint, Hint | undefined>(true)
}
recalled.held_back?.[0]?.count.toFixed()
recalled.late?.join()
// @ts-expect-error a list
store.recall('x', { sources: 'hints' })
same<ReturnType<Store['sources']>, readonly string[]>(true)
store.outcome({ command: 'make', ok: false, exit_code: 2, context: {} }).matched[0]?.failure_count
// @ts-expect-error it needs to know how it ended
store.outcome({ command: 'make' })
store.envNames({ component: 'api', key: 'build' }).names.join()
store.why('api', 'build', null).verdict.length
store.undo({ id: store.deletions().deletions[0]?.id ?? null }).restored.toFixed()
store.listComponents().components[0]?.hint_count.toFixed()
same<Os, 'linux' | 'darwin' | 'windows'>(true)
same<typeof here.os, Os | undefined>(true)
const limits: Json | undefined = store.status()['limits']
store.call('nudge.status', {})
store.call('nudge.of_a_later_version', { limits })
session.callJson('nudge.status', '{}').length
Store.forget('x')
Context.detect({ branch: null }).toJSON().branch
same<ReturnType<typeof methods>, readonly Method[]>(true)
errorCodes.E_QUOTA.toFixed()
// @ts-expect-error no such code
errorCodes.E_OTHER

try {
  store.close()
} catch (error) {
  if (error instanceof NudgeError) {
    same<typeof error.code, ErrorCode>(true)
    if (error.code === 'E_CONFLICT') error.data['current_version']
    // @ts-expect-error no such code
    if (error.code === 'E_NOTHING') error.rpcCode
  }
}
