/// <reference lib="esnext.disposable" />
import type { Sources } from './sources.js'
import type {
  AnthropicTool,
  ContextLike,
  ContextSpec,
  Deletion,
  DigestOptions,
  EnvNamesParams,
  ErrorCode,
  Hint,
  ImportMode,
  Json,
  Match,
  MatchExplain,
  Method,
  Omitted,
  OpenAiTool,
  Options,
  Os,
  OutcomeParams,
  QueryParams,
  RecallOptions,
  ResponsesTool,
  Row,
  SetOptions,
  StoreOptions,
  SuggestEvent,
  SuggestParams,
  Suggestion,
  ToolAnswer,
  ToolResult,
  ToolUse,
  Value
} from './types.js'

// Of the methods of each source; generated.
export type * from './sources.js'
export type * from './types.js'

/** A checked, immutable context; the quickest way to look up again and again from one place. */
export class Context {
  /** @throws {NudgeError} `E_INVALID` for a relative cwd, one with `..`, or a size over the limits. */
  constructor(spec?: Context | Options<ContextSpec> | null)
  /**
   * The context of this process, by its folder (or `spec.cwd`), git's files there, the system and the
   * environment. Fields of `spec` go before what is found; null means unknown, and where `cwd` is unknown,
   * so are the repository and the branch that are not given.
   */
  static detect(spec?: Options<ContextSpec>): Context
  readonly cwd: string | undefined
  readonly repo: string | undefined
  readonly branch: string | undefined
  readonly os: Os | undefined
  readonly files_open: readonly string[]
  /** The same. */
  readonly filesOpen: readonly string[]
  /** Without the environment, whose values may be secrets. */
  toJSON(): ContextSpec
}

/**
 * A store of this process, or of the running session ({@link connect}). Every call is synchronous; results
 * are frozen plain objects with the names of the JSON interface. A refused call throws a {@link NudgeError}
 * and changes nothing; only after `E_UNAVAILABLE` a session may have carried it out all the same.
 */
export class Store {
  constructor(options?: Options<StoreOptions> | null)
  /** Forgets a name; threads that have the store open keep it. Whether there was one. */
  static forget(name: string): boolean
  /**
   * Finds the best hint of a key that fits the context. A miss is null. `variant` asks for that one only, if it fits.
   * `console.log` of what it finds hides a secret; `console.dir` and `console.table` show it.
   */
  get(component: string, key: string, context?: ContextLike, options?: { readonly variant?: string | null } | null): Match | null
  /** Stores a hint, or updates the variant with an equal scope. Another scope adds a variant to the key; `variants` counts them. `unchanged`: it said the same before. `previous` had another value. `kept`: a hint with a duration is there next time, else `keeping` says why not. `telling`: a start does not tell it, and what changes that. */
  set(component: string, key: string, value: Value, options?: Options<SetOptions> | null): { readonly hint: Hint; readonly variants: number; readonly unchanged?: true; readonly previous?: Hint; readonly note?: string; readonly reach?: string; readonly kept?: boolean; readonly keeping?: string; readonly telling?: string }
  /** Searches the hints that fit, and returns the best first. Secret values are not shown. */
  query(params?: Options<QueryParams> | null): { readonly hints: readonly Row[] }
  /** Counts a use of a hint, so that the hint ranks higher later. Pass the context it was found with. */
  bump(
    component: string,
    key: string,
    options?: { readonly delta?: number | null; readonly context?: ContextLike; readonly variant?: string | null } | null
  ): { readonly hint: Hint }
  /** Deletes a hint, one of its variants, or all its variants. */
  delete(
    component: string,
    key: string,
    options?: { readonly variant?: string | null; readonly all?: boolean | null } | null
  ): { readonly deleted: true; readonly previous: Hint; readonly deleted_count: number }
  /** Lists the components, each with the number of its hints. */
  listComponents(): { readonly components: readonly { readonly name: string; readonly hint_count: number }[] }
  /** Exports the store, or one component. The payload is plain data. */
  export(
    options?: Options<{ readonly format?: 'json' | null; readonly component?: string | null; readonly include_secrets?: boolean | null }> | null
  ): { readonly payload: { readonly [name: string]: Json }; readonly omitted_secrets: number }
  /** Imports the payload of an export, or a payload that was written by hand. `merge`: the later `updated_at` wins; or `replace`. */
  import(
    payload: { readonly [name: string]: Json },
    options?: Options<{ readonly mode?: ImportMode | null; readonly allow_secret?: boolean | null }> | null
  ): {
    readonly imported: number
    readonly skipped: number
    readonly errors: readonly { readonly component: string; readonly key: string; readonly reason: ErrorCode }[]
  }
  /** Suggests the hints that an agent should be told at an event. `changes` is what changed of what it was told, `ticket` is for {@link Store.told}. */
  suggest(params: Options<SuggestParams>): Omitted & {
    readonly suggestions: readonly Suggestion[]
    readonly changes: readonly { readonly source: string; readonly name: string; readonly line: string }[]
    readonly notes?: readonly string[]
    readonly started: boolean
    readonly ticket?: string
  }
  /**
   * Returns the lines of {@link Store.suggest} as one text for a prompt. It is a heading and a line for each, at most `maxBytes`
   * (2,000) in all and `limit` lines (14 at a start, 6 at a prompt, 3 at a failure). `''` when there is nothing to tell.
   */
  digest(
    event: SuggestEvent,
    options?: Options<DigestOptions> | null
  ): { readonly text: string; readonly omitted: number; readonly notes?: readonly string[]; readonly late?: readonly string[]; readonly started: boolean; readonly ticket?: string }
  /** Confirms that the caller showed the lines of an earlier answer of {@link Store.suggest} or {@link Store.digest}. `told` is how many suggestions count as told by it. */
  told(clientSession: string, ticket: string): { readonly told: number }
  /** Finds the hints that fit a question in words. Of all sources; nothing counts as told. */
  recall(query: string, options?: Options<RecallOptions> | null): Omitted & { readonly items: readonly Suggestion[] }
  /** Counts the outcome of a command for the hints that name it. `matched` are the hints it changed. */
  outcome(params: Options<OutcomeParams>): { readonly matched: readonly Hint[] }
  /** Lists the environment variables that the scopes of the matching hints mention. */
  envNames(params?: Options<EnvNamesParams> | null): { readonly names: readonly string[]; readonly values: readonly string[] }
  /** Explains why `get` returns a certain hint, or why it returns none. Every variant is there, with each condition and each part of its score. */
  why(
    component: string,
    key: string,
    context?: ContextLike
  ): {
    readonly variants: readonly {
      readonly hint: Hint
      readonly conditions: readonly { readonly field: string; readonly met: boolean; readonly reason: string }[]
      readonly match_explain: MatchExplain
    }[]
    readonly verdict: string
  }
  /** Lists the last deletions and replacements, newest first. */
  deletions(): { readonly deletions: readonly Deletion[] }
  /** Restores deleted or replaced hints in their earlier state. It leaves out hints that were stored anew or have expired since. The last, or what has this id. */
  undo(options?: { readonly id?: number | null } | null): Deletion & { readonly restored: number; readonly skipped: number }
  /** Returns the number of lookups and suggestions, and the outcomes. */
  stats(): { readonly [name: string]: Json }
  /** Returns the size and the limits of the store. Of a session also its members, proxies, journal_bytes, port and pid. */
  status(): { readonly [name: string]: Json }
  /** How many hints there are, wherever they apply. */
  readonly size: number
  /** All of them as they were when it began, by component, key and variant, wherever they apply; secrets are redacted. */
  [Symbol.iterator](): Iterator<Hint>
  /** Any method of the table by its JSON-RPC name. */
  call(method: Method | (string & {}), params?: object): any
  /** The same with params and result as JSON text, neither read nor written here; half of a surrogate pair is refused. */
  callJson(method: Method | (string & {}), params: string): string
  /**
   * The sources besides the hints: asks the session again, as another server may have others, and makes a property of
   * each; `connect` has done so. `session.demo.add({ name, text })` is `nudge.demo.add`. None in this process.
   */
  sources(): readonly string[]
  /** Gives the store up at once; every later call throws `E_UNAVAILABLE`. Twice is once. */
  close(): void
  /** `using store = new Store()` closes it. */
  [Symbol.dispose](): void
}

/**
 * The running session: a {@link Store} with the sources that it tells of; `sources.d.ts` has those that come with Nudge. A store
 * of this process has hints alone.
 */
export interface Session extends Store, Sources {}

/** The functions of `T`, each with a promise of its result. */
type Promised<T> = { readonly [Name in keyof T]: T[Name] extends (...given: infer Given) => infer Result ? (...given: Given) => Promise<Result> : T[Name] }

/**
 * The running session, with a promise for each answer: no call blocks the event loop, and a refusal is a rejection with a
 * {@link NudgeError}. {@link promises} connects it.
 */
export type AsyncStore = Promised<Omit<Store, 'size' | 'close' | typeof Symbol.iterator | typeof Symbol.dispose>> & {
  readonly [Name in keyof Sources]: Promised<Sources[Name]>
} & {
  /** How many hints there are, wherever they apply. */
  readonly size: Promise<number>
  /** Gives the store up at once; calls under way are answered. */
  close(): void
  /** `using store = await promises.connect()` closes it. */
  [Symbol.dispose](): void
}
export const AsyncStore: { readonly prototype: AsyncStore }

/**
 * A refused call: nothing was changed, and `message` says what to do. With `E_UNAVAILABLE` nobody knows: a
 * session's server that answered too late may carry the call out yet.
 */
export class NudgeError extends Error {
  constructor(
    code: ErrorCode,
    message: string,
    data?: { readonly [name: string]: Json },
    options?: { readonly cause?: unknown; readonly rpcCode?: number }
  )
  readonly name: 'NudgeError'
  /** What only a newer server knows is as that server said it. */
  readonly code: ErrorCode
  /** The JSON-RPC code, such as 40401. */
  readonly rpcCode: number
  /** The field of the params that it is about, by its path, such as `meta.priority`. */
  readonly field: string | undefined
  /** `reason` is `code`; `field` is as above; the rest depends on it: `near_misses`, `current_version`, `limit`, `rule`, ... */
  readonly data: { readonly reason: ErrorCode; readonly [name: string]: Json }
}

/**
 * The running session of this machine (`nudge serve`), as a {@link Store}: `get` and all other methods ask
 * it, and block until it answers.
 * @param options `runtime_dir`: where the session keeps its files, else `NUDGE_RUNTIME_DIR`, else the
 * default; `name`: who calls, for people who ask later who did what.
 * @throws {NudgeError} `E_UNAVAILABLE` when no session runs.
 */
export function connect(options?: Options<{ readonly runtime_dir?: string | null; readonly name?: string }> | null): Session

/** The same with promises: `const store = await promises.connect()`. */
export const promises: {
  /** As {@link connect}; no call of the store blocks the event loop. */
  connect(options?: Options<{ readonly runtime_dir?: string | null; readonly name?: string }> | null): Promise<AsyncStore>
}

/** The tools that a store offers to a model, and who answers when it uses one; {@link tools} makes them. */
export class Tools implements Iterable<string> {
  private constructor()
  /** The store that they use. */
  readonly store: Store
  readonly names: readonly string[]
  readonly size: number
  has(name: string): boolean
  /** The definitions for the `tools` of Anthropic's `messages.create`. */
  anthropic(): AnthropicTool[]
  /** The definitions for the `tools` of OpenAI's `chat.completions.create`. */
  openai(): OpenAiTool[]
  /** The definitions for the `tools` of OpenAI's `responses.create`. */
  responses(): ResponsesTool[]
  /** Calls a tool with the arguments that the model gave, an object or its JSON text. What is refused is an answer too. */
  call(name: string, args?: object | string | null): ToolAnswer
  /** Answers what a model said, in its provider's form; null when it uses none of these tools. */
  answer<Said extends ToolUse>(said: Said): ToolResult<Said>
  answer(said: unknown): object | null
  [Symbol.iterator](): Iterator<string>
}

/**
 * The tools of a store, without one of a new store in this process: those of `nudge serve` over MCP. `context` says where
 * the model works; it counts for what the model leaves out.
 */
export function tools(store?: Store | null, options?: { readonly context?: ContextLike } | null): Tools

/** The names of the table's methods. */
export function methods(): readonly Method[]

/** The JSON-RPC code of each error code. */
export const errorCodes: { readonly [code in ErrorCode]: number }
