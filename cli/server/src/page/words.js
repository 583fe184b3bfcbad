// Puts facts about hints into plain words.

const SYSTEMS = {linux: 'Linux', darwin: 'macOS', windows: 'Windows'}
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** The words for each part of a score, and its maximum (semantics section 3). */
export const PARTS = {
  frecency: ['used often and lately', 0.3],
  priority: ['its priority', 0.2],
  confidence: ['how sure its author was', 0.2],
  scope_specificity: ['how narrow its scope is', 0.2],
  recency: ['how new it is', 0.1],
  files_open: ['a file of it is open', 0.05],
}

/** The words for the event at which a line was told. */
export const MOMENTS = {start: 'at the start', prompt: 'with a prompt', failure: 'beside a failure', tool: 'after a tool'}

/** Returns the id of a hint on the page. */
export const idOf = hint => JSON.stringify([hint.component, hint.key, hint.variant ?? ''])

export const nameOf = hint => `${hint.component}/${hint.key}`

export const isSecret = hint => hint.meta.sensitivity === 'secret'

/** Returns the text of a value, as stored. */
export function valueText(value) {
  if (typeof value === 'string') return value
  switch (value?.type) {
    case 'command': return value.cmd
    case 'path': return value.abs
    case 'template': return value.body
    default: return JSON.stringify(value?.data, null, 2)
  }
}

/** Returns the text of a value, with JSON on one line. */
export const valueLine = value => (value?.type === 'json' ? JSON.stringify(value.data) : valueText(value))

/** Returns the kind of a value, with its details. */
export function valueKind(value) {
  if (typeof value === 'string') return 'text'
  const more = {command: value.shell, path: value.os?.join(', '), template: value.format}[value.type]
  return more ? `${value.type} (${more})` : value.type
}

const or = words => (words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`)
const and = words => (words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`)

/** Writes the conditions of a scope in words; without conditions: everywhere. */
export function scopeWords(scope = {}) {
  const out = []
  const globs = list => (list.some(glob => /[*?[{]/.test(glob)) ? 'like ' : '')
  if (scope.repo) out.push(`in the repository ${or(scope.repo)}`)
  if (scope.cwd_glob) out.push(`in a folder ${globs(scope.cwd_glob)}${or(scope.cwd_glob)}`)
  if (scope.branch) out.push(`on a branch ${globs(scope.branch) || 'named '}${or(scope.branch)}`)
  if (scope.os) out.push(`on ${or(scope.os.map(os => SYSTEMS[os] ?? os))}`)
  if (scope.env_required) out.push(`where ${and(scope.env_required)} ${scope.env_required.length > 1 ? 'are' : 'is'} set`)
  for (const [name, values] of Object.entries(scope.env_match ?? {})) out.push(`where ${name} is ${or(values)}`)
  return out.length ? out : ['everywhere']
}

/** Writes how long ago a time was. */
export function ago(at, now = Date.now()) {
  const minutes = Math.floor(Math.max(0, now - Date.parse(at)) / MINUTE)
  if (minutes < 1) return 'just now'
  if (minutes < 60) return `${minutes} min ago`
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ago`
  return `${Math.floor(minutes / 1440)} days ago`
}

export const exactly = at => new Date(at).toLocaleString()

/** Converts a duration such as P1DT2H to milliseconds; null for the session. */
export function duration(ttl) {
  const parts = /^P(?:([\d.]+)W)?(?:([\d.]+)D)?(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?$/.exec(ttl)
  if (!parts) return null
  const [weeks, days, hours, minutes, seconds] = parts.slice(1).map(part => Number(part ?? 0))
  return (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * MINUTE + seconds * 1000
}

/** Returns when a hint expires; null if it lives as long as the session. */
export function expiry(hint) {
  const lasts = duration(hint.meta.ttl)
  return lasts === null ? null : new Date(Date.parse(hint.updated_at) + lasts)
}

/** Writes how long something still lasts. */
export function left(until, now = Date.now()) {
  const minutes = Math.max(0, Math.ceil((until - now) / MINUTE))
  if (minutes < 120) return `${minutes} min`
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor((until - now) / DAY)} days`
}

/** Writes whether a hint is there next time and how long it lasts, in a few words and in a sentence. */
export function keeping(hint, status) {
  const until = expiry(hint)
  const keeps = Boolean(status?.keeping?.on)
  if (isSecret(hint)) {
    return {kept: false, short: 'this session', long: 'Never kept for next time: its value is a secret.'}
  }
  if (!until) return {kept: false, short: 'this session', long: 'It ends with this session.'}
  const ends = `until ${until.toLocaleString()} (${left(until)} left)`
  return keeps
    ? {kept: true, short: until - Date.now() > 30 * DAY ? 'kept' : `${left(until)} left`, long: `Kept for next time, ${ends}.`}
    : {kept: false, short: `${left(until)} left`, long: `It lasts ${ends}, but only while this session does: nothing is kept here.`}
}

/** Writes how often a hint was used. */
export function useWords(hint) {
  const uses = hint.use_count ?? 0
  if (!uses) return 'not used yet'
  return uses === 1 ? 'worked once' : `worked ${uses} times`
}

export function failureWords(hint) {
  const count = hint.failure_count ?? 0
  if (!count) return null
  const times = count === 1 ? 'failed once' : `failed ${count} times`
  return `${times} since it last worked${count >= 3 ? '; so it comes last' : ''}`
}

/** Writes who stored a hint. */
export function author(meta) {
  const who = {user: 'a person', agent: 'an agent', 'tool-output': "a tool's output", 'file-import': 'an import'}[meta.source]
  if (meta.added_by) return who ? `${meta.added_by} (${who})` : meta.added_by
  return who ?? 'unknown'
}

export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`
