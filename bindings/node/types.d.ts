// The shapes of options and results.
import type { Context, Store } from './index.js'

/** Anything JSON can hold. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/**
 * What a store says no with, as `code` of a {@link NudgeError}:
 * `E_INVALID` a wrong type, size or range; `E_SCOPE_INVALID` an illegal glob or path; `E_SECRET_REJECTED`
 * the secret guard; `E_NOT_FOUND`; `E_CONFLICT` another version is stored; `E_QUOTA` a limit is reached;
 * `E_UNAVAILABLE` no session runs, or the store is closed; `E_UNKNOWN_METHOD`.
 */
export type ErrorCode =
  | 'E_NOT_FOUND'
  | 'E_INVALID'
  | 'E_CONFLICT'
  | 'E_SECRET_REJECTED'
  | 'E_SCOPE_INVALID'
  | 'E_QUOTA'
  | 'E_UNAVAILABLE'
  | 'E_UNKNOWN_METHOD'

/** A method of the table, for {@link Store.call}. */
export type Method =
  | 'nudge.get_hint'
  | 'nudge.query'
  | 'nudge.set_hint'
  | 'nudge.bump'
  | 'nudge.delete_hint'
  | 'nudge.list_components'
  | 'nudge.export'
  | 'nudge.import'
  | 'nudge.suggest'
  | 'nudge.digest'
  | 'nudge.told'
  | 'nudge.recall'
  | 'nudge.outcome'
  | 'nudge.env_names'
  | 'nudge.why'
  | 'nudge.deletions'
  | 'nudge.undo'
  | 'nudge.stats'
  | 'nudge.status'

/** Operating systems as results name them. */
export type Os = 'linux' | 'darwin' | 'windows'
/** Operating systems as contexts, scopes and paths may name them: `macos` is `darwin`, `win32` is `windows`. */
export type OsName = Os | 'macos' | 'win32'

/** What a hint holds, at most 64 KiB of text. A plain string is the commonest. */
export type Value =
  | string
  | { readonly type: 'command'; readonly cmd: string; readonly shell?: Shell }
  /** Results have {@link Os} alone. */
  | { readonly type: 'path'; readonly abs: string; readonly os?: readonly OsName[] }
  | {
      readonly type: 'template'
      readonly format: TemplateFormat
      readonly body: string
      readonly defaults?: { readonly [name: string]: string }
    }
  | { readonly type: 'json'; readonly data: Json }

/** One string, or several of which any fits. */
export type OneOrMore = string | readonly string[]

/** Where a hint applies; every field that is given must fit. At most 16 patterns a field, 512 bytes each. */
export interface Scope {
  /** Folders: `*` and `?` stay within a segment, `dir/**` is `dir` and all below. */
  readonly cwd_glob?: OneOrMore | null
  /** `host/org/repo`, `org/repo` for any host, or a URL. */
  readonly repo?: OneOrMore | null
  /** Branches, as globs. */
  readonly branch?: OneOrMore | null
  readonly os?: OsName | readonly OsName[] | null
  /** Variables that must be set. */
  readonly env_required?: OneOrMore | null
  /** Variables that must have one of these values. */
  readonly env_match?: { readonly [name: string]: OneOrMore } | null
}

/** Where a caller stands; a condition whose field is missing does not fit. */
export interface ContextSpec {
  /** Absolute folder, at most 4 KiB. */
  readonly cwd?: string | null
  /** The repository's URL, `host/org/repo` or `org/repo`. */
  readonly repo?: string | null
  readonly branch?: string | null
  readonly os?: OsName | null
  /** At most 256 variables of 32 KiB; those that scopes mention are enough. */
  readonly env?: { readonly [name: string]: string | null | undefined } | null
  /** At most 256 paths; hints of a component that one of them lies in score higher. */
  readonly files_open?: readonly string[] | null
}

/** `cwd_glob` is `cwdGlob`. */
type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name

/** Options by the names of the JSON interface, or as JavaScript names things: `allow_secret` or `allowSecret`. */
export type Options<T> = T | { readonly [Name in keyof T as Camel<Name & string>]: T[Name] }

/** Everywhere a context is taken: a {@link Context} is checked once, a plain object every time. */
export type ContextLike = Context | Options<ContextSpec> | null | undefined

/** A hint as it is stored. Times are RFC 3339 in UTC. */
export interface Hint {
  readonly component: string
  readonly key: string
  /** 12 hex digits of its scope; absent when it applies everywhere. */
  readonly variant?: string
  /** `"[secret]"` for a secret, except where `get` and `export` give it in full. */
  readonly value: Value
  readonly meta: HintMeta
  /** 1 when new, one more with every `set`. */
  readonly version: number
  readonly created_at: string
  readonly updated_at: string
  readonly last_used_at?: string
  readonly use_count?: number
  /** Failures since it last worked; from 3 on every other hint goes first. */
  readonly failure_count?: number
  readonly last_failed_at?: string
}

/** What was said about a hint, besides its value. */
export interface HintMeta {
  readonly reason?: string
  readonly tags?: readonly string[]
  readonly priority?: number
  readonly confidence?: number
  readonly ttl: string
  readonly sensitivity?: Sensitivity
  readonly scope?: StoredScope
  readonly source?: Source
  readonly added_by?: string
}

/** A scope in canonical form. */
export interface StoredScope {
  readonly cwd_glob?: readonly string[]
  readonly repo?: readonly string[]
  readonly branch?: readonly string[]
  readonly os?: readonly Os[]
  readonly env_required?: readonly string[]
  readonly env_match?: { readonly [name: string]: readonly string[] }
}

/** The addends of a score; these are the hints', other sources have names of their own. */
export interface Parts {
  readonly [name: string]: number | undefined
  readonly frecency: number
  readonly priority: number
  readonly confidence: number
  readonly scope_specificity: number
  readonly recency: number
  /** Only when an open file counts. */
  readonly files_open?: number
}

/** Why a hint was chosen, or not. Numbers have four decimals. */
export interface MatchExplain {
  readonly matched: boolean
  /** 0 to 1. */
  readonly score: number
  readonly parts: Parts
  readonly reasons: readonly string[]
}

/** What {@link Store.get} finds. While nothing of it changes, the same object is given again. */
export interface Match {
  readonly component: string
  readonly key: string
  /** The value, even of a secret. */
  readonly value: Value
  /** Its text: the string, the command, the folder, the body, or the data as JSON. */
  readonly text: string
  /** 0 to 1, four decimals. */
  readonly score: number
  /** Why it matched and what speaks for it. */
  readonly reasons: readonly string[]
  readonly parts: Parts
  /** `''` when it applies everywhere. */
  readonly variant: string
  readonly version: number
  /** All that is stored. */
  readonly hint: Hint
}

/** One row of {@link Store.query}. */
export interface Row {
  readonly hint: Hint
  readonly score: number
  readonly match_explain: MatchExplain
}

/**
 * Something worth telling: a model reads `line`; `parts` sum to `strength`, 0 to 1, by which offers of all sources are
 * compared. The hints add `hint` and `score`; other sources have members of their own.
 */
export interface Suggestion {
  readonly source: string
  readonly name: string
  readonly line: string
  readonly why: string
  readonly strength: number
  readonly parts: { readonly [part: string]: number }
  readonly paths: readonly string[]
  readonly match_explain: MatchExplain
  /** The call that gives the whole of it. */
  readonly more: { readonly method: Method | (string & {}); readonly params: { readonly [name: string]: Json } }
  readonly hint?: Hint
  readonly score?: number
}

/** What the limits of an answer held back, and who did not answer in time. */
export interface Omitted {
  readonly omitted: number
  /** The same by source. */
  readonly held_back?: readonly { readonly source: string; readonly count: number }[]
  readonly late?: readonly string[]
}

/** One call that deleted hints, or replaced a value. */
export interface Deletion {
  readonly id: number
  readonly at: string
  readonly what: 'deleted' | 'replaced'
  readonly by?: string
  readonly count: number
  /** The first 20. */
  readonly hints: readonly Hint[]
}

/** Limits and switches of a store; all optional. */
export interface StoreOptions {
  /** Shares the store with all threads of this process that open the same name. */
  readonly name?: string | null
  /** Reads what is not given from `NUDGE_MAX_HINTS` and so on; false when absent. */
  readonly from_env?: boolean | null
  /** 500. */
  readonly max_components?: number | null
  /** 200, variants counted. */
  readonly max_hints_per_component?: number | null
  /** 5,000. */
  readonly max_hints?: number | null
  /** 24 MiB, as exported. */
  readonly max_bytes?: number | null
  /** Refuses texts that look like credentials; true. */
  readonly secret_guard?: boolean | null
  /** For hints without one: `session`, or a duration such as `PT2H`. */
  readonly default_ttl?: string | null
  /** Most suggestions to one client session in 10 minutes; 20. */
  readonly suggest_max?: number | null
}

/** Options of {@link Store.set}. */
export interface SetOptions {
  /** At most 32, of 1 to 64 bytes each. */
  readonly tags?: readonly string[] | null
  /** `session`, or a duration such as `2h` or `PT2H` that counts from the last `set`. */
  readonly ttl?: string | null
  /** Everywhere when absent. */
  readonly scope?: Options<Scope> | null
  /** 1 to 10, whole; 5. */
  readonly priority?: number | null
  /** 0 to 1; 0.5. */
  readonly confidence?: number | null
  /** Why it is worth knowing, at most 2 KiB. */
  readonly reason?: string | null
  /** `secret` exempts the value from the guard and hides it. */
  readonly sensitivity?: Sensitivity | null
  readonly source?: Source | null
  /** Free text, at most 256 bytes. */
  readonly added_by?: string | null
  /** Refuses unless this is the stored version; 0: unless there is none. */
  readonly if_match_version?: number | null
  /** Updates this variant and keeps its scope. */
  readonly variant?: string | null
  /** The guard's finding is a false alarm. */
  readonly allow_secret?: boolean | null
}

export type Shell = 'bash' | 'sh' | 'powershell' | 'cmd' | 'zsh' | 'fish'
export type TemplateFormat = 'mustache' | 'handlebars' | 'jinja' | 'interpolate'
export type SuggestEvent = 'start' | 'prompt' | 'failure' | 'tool' | 'stop'
export type ImportMode = 'merge' | 'replace'
export type Sensitivity = 'secret' | 'normal'
export type Source = 'user' | 'agent' | 'tool-output' | 'file-import'

/** Params of {@link Store.query}; filters combine with and. */
export interface QueryParams {
  readonly component?: string | null
  /** Any of these keys. */
  readonly keys?: readonly string[] | null
  /** Any of these tags. */
  readonly tags?: readonly string[] | null
  /** Searches key, value and reason; unanchored, case-sensitive, at most 1 KiB. */
  readonly regex?: string | null
  /** Words that all stand in the hint, in any case; at most 1 KiB. */
  readonly text?: string | null
  readonly context?: ContextLike
  /** 1 to 1,000; 10. */
  readonly limit?: number | null
  /** Adds hints that do not fit, after the others. */
  readonly include_ineligible?: boolean | null
}

/** Params of {@link Store.suggest}. */
export interface SuggestParams {
  readonly event: SuggestEvent
  readonly context?: ContextLike
  /** What the user asked, for `prompt`. */
  readonly prompt?: string | null
  /** What failed, for `failure`. */
  readonly command?: string | null
  /** What it printed, for `failure`. */
  readonly error?: string | null
  /** The tool that was used, for `tool`, or the kind of subagent that ends, for `stop`. */
  readonly tool?: string | null
  /** The file that the tool was used on. */
  readonly file?: string | null
  /** A hint is shown to it once. */
  readonly client_session?: string | null
  /** Forgets what the session was shown. */
  readonly fresh?: boolean | null
  /** Most bytes of lines; 2,000. */
  readonly max_bytes?: number | null
  /** Most suggestions in this answer; what it holds back was not shown. */
  readonly limit?: number | null
  /** Milliseconds in which {@link Store.told} confirms that the answer was shown, 1 to 60,000; without it, it was. */
  readonly confirm_ms?: number | null
}

/** Options of {@link Store.digest}: those of {@link Store.suggest}. */
export interface DigestOptions extends Omit<SuggestParams, 'event'> {}

/** Answer of a tool, for the model. */
export interface ToolAnswer {
  /** The result as JSON, or the error with what to do. */
  readonly text: string
  readonly isError: boolean
}

/** A tool as Anthropic's messages take it. */
export interface AnthropicTool {
  name: string
  description: string
  input_schema: { type: 'object'; [keyword: string]: unknown }
}

/** A tool as OpenAI's chat completions take it. */
export interface OpenAiTool {
  type: 'function'
  function: { name: string; description: string; parameters: { [keyword: string]: unknown } }
}

/** A tool as OpenAI's responses take it. */
export interface ResponsesTool {
  type: 'function'
  name: string
  description: string
  parameters: { [keyword: string]: unknown }
  strict: boolean
}

/** What a model says when it uses a tool: a block of Anthropic's, a call of OpenAI's chat completions or responses. */
export type ToolUse =
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly type: 'function'; readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }
  | { readonly type: 'function_call'; readonly call_id: string; readonly name: string; readonly arguments: string }

/** The answer to each, as it goes into the next request; null for what uses none of these tools. */
export type ToolResult<Said> = Said extends { readonly type: 'tool_use' }
  ? { type: 'tool_result'; tool_use_id: string; content: string; is_error: boolean } | null
  : Said extends { readonly type: 'function' }
    ? { role: 'tool'; tool_call_id: string; content: string } | null
    : Said extends { readonly type: 'function_call' }
      ? { type: 'function_call_output'; call_id: string; output: string } | null
      : null

/** Options of {@link Store.recall}. */
export interface RecallOptions {
  readonly context?: ContextLike
  /** Most lines, 1 to 100; 10. */
  readonly limit?: number | null
  /** Most bytes of lines; 4,000. */
  readonly max_bytes?: number | null
  /** These sources only. */
  readonly sources?: readonly string[] | null
}

/** Params of {@link Store.outcome}. */
export interface OutcomeParams {
  readonly command: string
  readonly ok: boolean
  readonly exit_code?: number | null
  readonly context?: ContextLike
  /** As in {@link Store.suggest}: what came of what was suggested. */
  readonly client_session?: string | null
}

/** Params of {@link Store.envNames}: those of a `get` or of a `query`. */
export interface EnvNamesParams extends QueryParams {
  readonly key?: string | null
  readonly variant?: string | null
}
