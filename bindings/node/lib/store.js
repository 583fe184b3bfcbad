'use strict'

const native = require('../native.js')
const { contextOf, isContext, place, reveal } = require('./context.js')
const { ask, invalid, refusal } = require('./error.js')
const { freeze, read, write } = require('./json.js')
const { FIELDS, camel, fields, kindOf, options, optionsOf } = require('./options.js')
const { given, namespaces } = require('./sources.js')
const { Tools } = require('./tools.js')

/** The limits at which a store forgets its rendered answers and contexts, but no hints. */
const MAX_VIEWS = 256
const MAX_PAIRS = 4096
const MAX_CHARACTERS = 8 << 20

/** Marks an open session for the constructor. */
const SESSION = Symbol('session')
/** A mark that is no context, so that it equals no caller's context. */
const NOWHERE = Symbol('nowhere')
/** The empty context. */
const NONE = { json: '{}' }
/** The functions that call the native half; an AsyncStore overrides them. */
const ASK = Symbol('ask')
const ANSWER = Symbol('answer')
const FIND = Symbol('find')
const INSPECT = Symbol.for('nodejs.util.inspect.custom')

const unused = new FinalizationRegistry((number) => native.close(number))

/** The params of `set` that are not in `meta`. */
const BESIDE_META = ['if_match_version', 'variant', 'allow_secret']
const OF_SET = [...FIELDS.meta, ...BESIDE_META]
/** The options of a store: its limits, and all options. */
const COUNTS = ['max_components', 'max_hints_per_component', 'max_hints', 'max_bytes', 'suggest_max']
const OF_STORE = ['name', ...COUNTS, 'secret_guard', 'default_ttl', 'from_env']

/** A store seen from one context, with the answers that it has given. */
class View {
  /** The tokens, by the number of the pair. */
  tokens = []
  matches = []

  constructor(number) {
    this.number = number
  }
}

let toolsOf
let isStore

class Store {
  #number
  #own
  /** The view of each Context, and of the JSON of each plain object. */
  #views = new Map()
  /** The number of each component and key. */
  #pairs = new Map()
  #pairCount = 0
  /** The length of all rendered answers, and of the contexts as JSON. */
  #characters = 0
  #lastContext = NOWHERE
  #lastView
  /** The names of the properties that are sources. */
  #sources = []

  constructor(settings, session) {
    this.#own = session !== SESSION
    this.#number = this.#own ? open(settings) : settings
    unused.register(this, this.#number, this)
  }

  static forget(name) {
    if (typeof name !== 'string') throw invalid(`Pass the name of a store, not ${kindOf(name)}.`)
    return native.forget(name)
  }

  get(component, key, context, more) {
    if (!this.#own || (more !== undefined && more !== null)) return this.#find(component, key, context, more)
    // The order matters: reading a plain object may run its getters, which may call this store; a new pair may clear
    // the views; a new view leaves the pairs alone.
    const here = context === this.#lastContext ? context : placeOf(context)
    const pair = this.#pairs.get(component)?.get(key) ?? this.#addPair(component, key)
    const view = here === this.#lastContext ? this.#lastView : this.#viewOf(here)
    const token = native.get(this.#number, view.number, pair)
    if (token === 0) return null
    return token === view.tokens[pair] ? view.matches[pair] : this.#render(view, pair, token)
  }

  set(component, key, value, more) {
    const beside = {}
    const meta = { ...options(more, OF_SET) }
    for (const name of BESIDE_META) {
      beside[name] = meta[name]
      delete meta[name]
    }
    if (isObject(meta.scope)) meta.scope = place(options(meta.scope, FIELDS.scope, 'scope field'))
    const told = value?.type === 'path' ? place(value) : value
    return this.#run('nudge.set_hint', { component, key, value: told, meta, ...beside })
  }

  query(params) { return this.#with('nudge.query', params) }
  bump(component, key, more) { return this.#with('nudge.bump', more, { component, key }) }
  delete(component, key, more) { return this.#with('nudge.delete_hint', more, { component, key }) }
  listComponents() { return this.#run('nudge.list_components', {}) }
  export(more) { return this.#with('nudge.export', more) }
  import(payload, more) { return this.#with('nudge.import', more, { payload }) }
  suggest(params) { return this.#with('nudge.suggest', params) }
  digest(event, more) { return this.#with('nudge.digest', more, { event }) }
  told(clientSession, ticket) { return this.#run('nudge.told', { client_session: clientSession, ticket }) }
  recall(query, more) { return this.#with('nudge.recall', more, { query }) }
  outcome(params) { return this.#with('nudge.outcome', params) }
  envNames(params) { return this.#with('nudge.env_names', params) }
  why(component, key, context) { return this.#run('nudge.why', { component, key, context }) }
  deletions() { return this.#run('nudge.deletions', {}) }
  undo(more) { return this.#with('nudge.undo', more) }
  stats() { return this.#run('nudge.stats', {}) }
  status() { return this.#run('nudge.status', {}) }

  /** Returns the number of hints. */
  get size() { return this.status().hints }

  /** Iterates over all hints as they were at the start, by component, key and variant; secrets are redacted. */
  [Symbol.iterator]() { return read(ask(native.hints, this.#number))[Symbol.iterator]() }

  call(method, params = {}) {
    if (typeof method !== 'string') throw invalid('Pass the name of a method, such as nudge.get_hint.')
    const context = params?.context
    if (isContext(context)) {
      const { context: _, ...others } = params
      // This comes first, because reading the options may call this store.
      const json = write(others, invalid)
      return this[ANSWER](this.#number, this.#viewOf(context).number, method, json)
    }
    return this[ANSWER](this.#number, undefined, method, write(params, invalid))
  }

  [ANSWER](number, view, method, json) {
    return read(this[ASK](number, view, method, json))
  }

  [ASK](number, view, method, json) {
    return view === undefined ? ask(native.call, number, method, json) : ask(native.callFrom, number, view, method, json)
  }

  [FIND](number, view, json) {
    return foundOf(ask(native.find, number, view, json))
  }

  callJson(method, params) {
    if (typeof method !== 'string' || typeof params !== 'string') throw invalid('Pass the name of a method, and its params as JSON text.')
    if (!params.isWellFormed()) throw invalid('The params hold half of a character.')
    return this[ASK](this.#number, undefined, method, params)
  }

  sources() {
    // A session lists its methods; a store of this process has only hints.
    if (this.#own) return this.#addSources([])
    const told = this.call('nudge.methods')
    return told instanceof Promise ? told.then(({ methods }) => this.#addSources(methods)) : this.#addSources(told.methods)
  }

  #addSources(rows) {
    const call = ({ name, context, params: schema }, params) => {
      const told = given(schema?.properties ? options(params, Object.keys(schema.properties)) : fields(params))
      return context === 'none' ? this.call(name, told) : this.#run(name, told)
    }
    const answer = this instanceof AsyncStore ? async (row, params) => call(row, params) : call
    const found = [...namespaces(rows, answer)].filter(([name]) => !(name in Store.prototype))
    const names = found.map(([name]) => name)
    for (const name of this.#sources) if (!names.includes(name)) delete this[name]
    // The sources are plain properties, so that a lookup is as quick as without them.
    for (const [name, value] of found) Object.defineProperty(this, name, { value, configurable: true })
    this.#sources = Object.freeze(names)
    return this.#sources
  }

  close() {
    unused.unregister(this)
    native.close(this.#number)
    this.#clear(true)
  }

  [INSPECT]() {
    if (!this.#own) return 'Store { session }'
    try {
      const { size } = this
      return `Store { ${size} ${size === 1 ? 'hint' : 'hints'} }`
    } catch {
      return 'Store { closed }'
    }
  }

  /** Makes the tools of this store for a caller in `context`. */
  static {
    toolsOf = (store, context) => {
      if (!isStore(store)) throw invalid(`Pass a Store, not ${kindOf(store)}.`)
      const here = placeOf(context)
      // Reports an error in the context now.
      store.#viewOf(here)
      const asked = (call, tools, ...more) => ask(call, store.#number, store.#viewOf(here).number, tools, ...more)
      return new Tools(store, ask(native.tools, store.#number), asked)
    }
    isStore = (given) => typeof given === 'object' && given !== null && #number in given
  }

  /** Runs a method with its options and arguments as params. */
  #with(method, more, args = {}) {
    return this.#run(method, { ...optionsOf(method, more, ...Object.keys(args)), ...args })
  }

  /** Calls a method; its context may have the spellings that people use. */
  #run(method, params) {
    const { context } = params
    const given = context === undefined || isContext(context) ? params : { ...params, context: contextOf(context) }
    return this.call(method, given)
  }

  /** Does what `get` does through the method table, for one variant, or in a session. */
  #find(component, key, context, more) {
    checkNames(component, key)
    const { variant } = options(more, ['variant'])
    const params = write({ component, key, variant }, invalid)
    return this[FIND](this.#number, this.#viewOf(placeOf(context)).number, params)
  }

  #render(view, pair, token) {
    const json = ask(native.render, this.#number, view.number, pair)
    const found = match(json)
    // A secret is not remembered.
    if (isSecret(found.hint)) return found
    view.tokens[pair] = token
    view.matches[pair] = found
    this.#characters += json.length
    if (this.#characters > MAX_CHARACTERS) this.#forget(false)
    return found
  }

  #addPair(component, key) {
    checkNames(component, key)
    if (this.#pairCount >= MAX_PAIRS) this.#forget(true)
    const pair = ask(native.pair, this.#number, component, key)
    this.#pairCount += 1
    let keys = this.#pairs.get(component)
    if (keys === undefined) this.#pairs.set(component, (keys = new Map()))
    keys.set(key, pair)
    return pair
  }

  /** Returns the view for a result of `placeOf`. */
  #viewOf(here) {
    const isPlain = typeof here === 'string'
    const { json, env } = isPlain ? { json: here } : isContext(here) ? reveal(here) : NONE
    // A plain object may change later, so its JSON is the key; a Context cannot change.
    const known = isContext(here) ? here : json
    let view = this.#views.get(known)
    if (view === undefined) {
      const size = json.length + (env?.length ?? 0)
      if (this.#views.size >= MAX_VIEWS || this.#characters + size > MAX_CHARACTERS) this.#forget(false)
      view = new View(ask(native.view, this.#number, json, env))
      this.#views.set(known, view)
      this.#characters += size
    }
    if (!isPlain) {
      this.#lastContext = here
      this.#lastView = view
    }
    return view
  }

  /** Forgets the views, and with `pairs` the pairs too. */
  #forget(pairs) {
    ask(native.reset, this.#number, pairs)
    this.#clear(pairs)
  }

  #clear(pairs) {
    this.#views.clear()
    this.#lastContext = NOWHERE
    this.#lastView = undefined
    this.#characters = 0
    if (pairs) {
      this.#pairs.clear()
      this.#pairCount = 0
    }
  }
}

/** Prepares a context for `#viewOf`: a Context, undefined or null stays as it is, anything else becomes JSON. */
function placeOf(context) {
  return context === undefined || context === null || isContext(context) ? context : write(contextOf(context), invalid)
}

/** `using store = new Store()` closes the store. */
Object.defineProperty(Store.prototype, Symbol.dispose ?? Symbol.for('nodejs.dispose'), {
  value: Store.prototype.close,
  configurable: true,
  writable: true
})

/** Converts the result of the native `find` to that of `get`. */
const foundOf = (json) => (json === null || json === undefined ? null : match(json))

/** The running session with promises: a thread of Node's pool waits for each answer. */
class AsyncStore extends Store {
  get size() { return this.status().then(({ hints }) => hints) }

  async [ANSWER](...given) {
    return read(await this[ASK](...given))
  }

  [ASK](...given) {
    return later(native.callLater, ...given)
  }

  async [FIND](number, view, json) {
    return foundOf(await later(native.findLater, number, view, json))
  }

  [INSPECT]() {
    return 'AsyncStore { session }'
  }
}
Object.defineProperty(AsyncStore.prototype, Symbol.iterator, { value: undefined })
const VERBS = ['get', 'set', 'query', 'bump', 'delete', 'listComponents', 'export', 'import', 'suggest', 'digest', 'told', 'recall', 'outcome', 'envNames', 'why', 'deletions', 'undo', 'stats', 'status', 'call', 'callJson', 'sources']
// Refused arguments are rejections as well, so that every refusal arrives in the same way.
for (const verb of VERBS) {
  const value = { async [verb](...given) { return Store.prototype[verb].apply(this, given) } }[verb]
  Object.defineProperty(AsyncStore.prototype, verb, { value, configurable: true, writable: true })
}

/** Does what `ask` does, for a native function that returns a promise. */
async function later(call, ...given) {
  try {
    return await call(...given)
  } catch (thrown) {
    throw refusal(thrown) ?? thrown
  }
}

/** Opens a store of this process; returns its number. */
function open(settings) {
  const { name, from_env, ...config } = options(settings, OF_STORE)
  if (isGiven(name)) checkText('The name of a store', name)
  for (const count of COUNTS) checkSetting(count, config[count], Number.isSafeInteger(config[count]) && config[count] >= 0, 'a whole number of 0 or more')
  checkSetting('secret_guard', config.secret_guard, typeof config.secret_guard === 'boolean', 'true or false')
  checkSetting('default_ttl', config.default_ttl, typeof config.default_ttl === 'string', 'a string')
  checkSetting('from_env', from_env, typeof from_env === 'boolean', 'true or false')
  if (from_env) config.env = Object.fromEntries(Object.entries(process.env).filter(([variable]) => variable.startsWith('NUDGE_')))
  return ask(native.open, write(config, invalid), name)
}

/** Returns the arguments of the native `connect`. */
function readConnection(settings) {
  const { runtime_dir, name = 'nudge-hints (Node)' } = options(settings, ['runtime_dir', 'name'])
  if (isGiven(runtime_dir)) checkText('runtimeDir', runtime_dir)
  checkText('The name of a caller', name)
  // JavaScript reads the variable in this thread, as Context.detect does.
  return [runtime_dir ?? (process.env.NUDGE_RUNTIME_DIR || undefined), name]
}

/** Connects to the running session of this machine. */
function connect(settings) {
  const session = new Store(ask(native.connect, ...readConnection(settings)), SESSION)
  session.sources()
  return session
}

/** Connects without blocking the event loop. */
const promises = Object.freeze({
  async connect(settings) {
    const session = new AsyncStore(await later(native.connectLater, ...readConnection(settings)), SESSION)
    await session.sources()
    return session
  }
})

/** Makes the tools of a store for a model; without a store, makes a new one. */
function tools(store, more) {
  const { context } = options(more, ['context'])
  return toolsOf(store ?? new Store(), context)
}

const isGiven = (value) => value !== undefined && value !== null
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)

function checkSetting(name, value, fits, what) {
  if (isGiven(value) && !fits) throw invalid(`${camel(name)} must be ${what}, not ${kindOf(value)}.`)
}

function checkNames(component, key) {
  checkText('`component`', component)
  checkText('`key`', key)
}

function checkText(what, given) {
  if (typeof given !== 'string') throw invalid(`${what} must be a string, not ${kindOf(given)}.`)
  if (!given.isWellFormed()) throw invalid(`${what} holds half of a character.`)
}

const isSecret = (hint) => hint.meta.sensitivity === 'secret'

/** Makes the result of `get` from `{text, hint, match_explain}`. */
function match(json) {
  const { text, hint, match_explain: explain } = JSON.parse(json)
  const { score, reasons, parts } = explain
  const { component, key, value, version, variant = '' } = hint
  const found = { component, key, value, text, score, reasons, parts, variant, version, hint }
  const shown = isSecret(hint) ? '[secret]' : value
  if (isSecret(hint)) show(hint, () => ({ ...hint, value: shown }))
  // `inspect` shows the hint's name, its value, and the reasons.
  show(found, (inspect) => `Match ${inspect({ component, key, value: shown, score, reasons })}`)
  return freeze(found)
}

/** Makes `inspect` show another form; the object itself stays unchanged. */
function show(object, look) {
  Object.defineProperty(object, INSPECT, {
    value(_depth, settings, inspect) {
      const seen = look((inner) => inspect(inner, settings))
      return typeof seen === 'string' ? seen : inspect(seen, settings)
    }
  })
}

const methods = () => Object.freeze(native.methods())

module.exports = { AsyncStore, Store, connect, methods, promises, tools }
