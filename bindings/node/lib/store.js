'use strict'

const native = require('../native.js')
const { isContext, place, reveal } = require('./context.js')
const { ask, invalid } = require('./error.js')
const { freeze, read, write } = require('./json.js')
const { given, namespaces } = require('./sources.js')

/** A store forgets what it has rendered and the contexts, no hint, when one of these is reached. */
const MAX_VIEWS = 256
const MAX_PAIRS = 4096
const MAX_CHARACTERS = 8 << 20

/** Marks an open session for the constructor. */
const SESSION = Symbol('session')
/** Is no context, so that nothing was looked up from it. */
const NOWHERE = Symbol('nowhere')
/** What is told where there is no context. */
const NONE = { json: '{}' }
const INSPECT = Symbol.for('nodejs.util.inspect.custom')

const unused = new FinalizationRegistry((number) => native.close(number))

/** What stands beside `meta` in the params of `set`. */
const BESIDE_META = ['if_match_version', 'variant', 'allow_secret']

/** A store seen from one context, and what it has given from there. */
class View {
  /** By pair. */
  tokens = []
  matches = []

  constructor(number) {
    this.number = number
  }
}

class Store {
  #number
  #own
  /** View by Context, or by the JSON of a plain object. */
  #views = new Map()
  /** Number by component and key. */
  #pairs = new Map()
  #pairCount = 0
  /** Length of all that is rendered, and of the contexts as JSON. */
  #characters = 0
  #lastContext = NOWHERE
  #lastView
  /** Names of the properties that are sources. */
  #sources = []

  constructor(options, session) {
    this.#own = session !== SESSION
    this.#number = this.#own ? open(options) : options
    unused.register(this, this.#number, this)
  }

  static forget(name) {
    if (typeof name !== 'string') throw invalid('Pass the name of a store.')
    return native.forget(name)
  }

  get(component, key, context, options) {
    if (!this.#own || (options !== undefined && options !== null)) return this.#find(component, key, context, options)
    // In this order: what reads a plain object may run its getters, which may call this store; a new pair
    // may empty the views; a new view leaves the pairs alone.
    const here = context === this.#lastContext ? context : placeOf(context)
    const pair = this.#pairs.get(component)?.get(key) ?? this.#addPair(component, key)
    const view = here === this.#lastContext ? this.#lastView : this.#viewOf(here)
    const token = native.get(this.#number, view.number, pair)
    if (token === 0) return null
    return token === view.tokens[pair] ? view.matches[pair] : this.#render(view, pair, token)
  }

  set(component, key, value, options) {
    const beside = {}
    const meta = { ...fields(options) }
    for (const name of BESIDE_META) {
      beside[name] = meta[name]
      delete meta[name]
    }
    if (meta.scope !== undefined) meta.scope = place(meta.scope)
    const told = value?.type === 'path' ? place(value) : value
    return this.#run('nudge.set_hint', { component, key, value: told, meta, ...beside })
  }

  query(params) { return this.#run('nudge.query', fields(params)) }
  bump(component, key, options) { return this.#run('nudge.bump', named({ component, key }, options)) }
  delete(component, key, options) { return this.#run('nudge.delete_hint', named({ component, key }, options)) }
  listComponents() { return this.#run('nudge.list_components', {}) }
  export(options) { return this.#run('nudge.export', fields(options)) }
  import(payload, options) { return this.#run('nudge.import', named({ payload }, options)) }
  suggest(params) { return this.#run('nudge.suggest', fields(params)) }
  told(clientSession, ticket) { return this.#run('nudge.told', { client_session: clientSession, ticket }) }
  recall(query, options) { return this.#run('nudge.recall', named({ query }, options)) }
  outcome(params) { return this.#run('nudge.outcome', fields(params)) }
  envNames(params) { return this.#run('nudge.env_names', fields(params)) }
  why(component, key, context) { return this.#run('nudge.why', { component, key, context }) }
  deletions() { return this.#run('nudge.deletions', {}) }
  undo(options) { return this.#run('nudge.undo', fields(options)) }
  stats() { return this.#run('nudge.stats', {}) }
  status() { return this.#run('nudge.status', {}) }

  call(method, params = {}) {
    if (typeof method !== 'string') throw invalid('Pass the name of a method, such as nudge.get_hint.')
    const context = params?.context
    if (isContext(context)) {
      const { context: _, ...others } = params
      // First: what it reads may call this store.
      const json = write(others, invalid)
      return read(ask(native.callFrom, this.#number, this.#viewOf(context).number, method, json))
    }
    return read(ask(native.call, this.#number, method, write(params, invalid)))
  }

  callJson(method, params) {
    if (typeof method !== 'string' || typeof params !== 'string') throw invalid('Pass the name of a method, and its params as JSON text.')
    if (!params.isWellFormed()) throw invalid('The params hold half of a character.')
    return ask(native.call, this.#number, method, params)
  }

  sources() {
    const call = ({ name, context }, params) => {
      const told = given(fields(params))
      return context === 'none' ? this.call(name, told) : this.#run(name, told)
    }
    const found = [...namespaces(this.#rows(), call)].filter(([name]) => !(name in Store.prototype))
    const names = found.map(([name]) => name)
    for (const name of this.#sources) if (!names.includes(name)) delete this[name]
    // As plain properties, so that a lookup is as quick as without them.
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
    return this.#own ? 'Store {}' : 'Store { session }'
  }

  /** Every method that the session tells of; none of a store of this process, which has hints alone. */
  #rows() {
    if (this.#own) return []
    try {
      return this.call('nudge.methods').methods
    } catch (refused) {
      // A server from before there were other sources.
      if (refused.code === 'E_UNKNOWN_METHOD') return []
      throw refused
    }
  }

  /** `call` for the methods above, which also take the names of systems that people use. */
  #run(method, params) {
    const { context } = params
    const given = context === undefined || isContext(context) ? params : { ...params, context: place(context) }
    return this.call(method, given)
  }

  /** As `get`, of one variant, or in a session: the table is asked. */
  #find(component, key, context, options) {
    checkNames(component, key)
    const { variant, ...others } = fields(options)
    for (const name of Object.keys(others)) throw invalid(`The only option of get is variant, not ${name}.`)
    const params = write({ component, key, variant }, invalid)
    const found = ask(native.find, this.#number, this.#viewOf(placeOf(context)).number, params)
    return found === null || found === undefined ? null : match(found)
  }

  #render(view, pair, token) {
    const json = ask(native.render, this.#number, view.number, pair)
    const found = match(json)
    // Secrets stay no longer than their reader wants.
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

  /** The view from what `placeOf` gives. */
  #viewOf(here) {
    const isPlain = typeof here === 'string'
    const { json, env } = isPlain ? { json: here } : isContext(here) ? reveal(here) : NONE
    // A plain object may be changed, a Context cannot be.
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

  /** Forgets the views, and the pairs too if asked. */
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

/** What `#viewOf` takes: a Context, undefined or null as it is, anything else as JSON. */
function placeOf(context) {
  return context === undefined || context === null || isContext(context) ? context : write(place(context), invalid)
}

/** `using store = new Store()` closes it. */
Object.defineProperty(Store.prototype, Symbol.dispose ?? Symbol.for('nodejs.dispose'), {
  value: Store.prototype.close,
  configurable: true,
  writable: true
})

/** Opens a store of this process; its number. */
function open(options) {
  const { name, from_env, ...config } = fields(options)
  if (name !== undefined && name !== null) checkText('The name of a store', name)
  if (from_env !== undefined && from_env !== null && typeof from_env !== 'boolean') throw invalid('from_env must be true or false.')
  if (from_env) config.env = Object.fromEntries(Object.entries(process.env).filter(([variable]) => variable.startsWith('NUDGE_')))
  else if ('env' in config) throw invalid('env is no option of a store; from_env: true reads the environment.')
  return ask(native.open, write(config, invalid), name)
}

/** The running session of this machine. */
function connect(options) {
  const { runtime_dir, name = 'nudge-hints (Node)', ...others } = fields(options)
  for (const option of Object.keys(others)) throw invalid(`The options of connect are runtime_dir and name, not ${option}.`)
  if (runtime_dir !== undefined && runtime_dir !== null) checkText('runtime_dir', runtime_dir)
  checkText('The name of a caller', name)
  // Read here, as this thread has it: see Context.detect.
  const folder = runtime_dir ?? (process.env.NUDGE_RUNTIME_DIR || undefined)
  const session = new Store(ask(native.connect, folder, name), SESSION)
  session.sources()
  return session
}

/** Options as an object. */
function fields(options) {
  if (options === undefined || options === null) return {}
  if (typeof options !== 'object' || Array.isArray(options)) throw invalid('Pass the options as an object.')
  return options
}

/** Options beside arguments that they may not repeat. */
function named(given, options) {
  const others = fields(options)
  for (const name of Object.keys(given)) {
    if (name in others) throw invalid(`${name} is an argument of its own, and no option.`)
  }
  return { ...others, ...given }
}

function checkNames(component, key) {
  checkText('`component`', component)
  checkText('`key`', key)
}

function checkText(what, given) {
  if (typeof given !== 'string') throw invalid(`${what} must be a string.`)
  if (!given.isWellFormed()) throw invalid(`${what} holds half of a character.`)
}

const isSecret = (hint) => hint.meta.sensitivity === 'secret'

/** What `get` returns, of `{text, hint, match_explain}`. */
function match(json) {
  const { text, hint, match_explain: explain } = JSON.parse(json)
  const { score, reasons, parts } = explain
  const found = { value: hint.value, text, score, reasons, parts, variant: hint.variant ?? '', version: hint.version, hint }
  if (isSecret(hint)) {
    hide(hint, { value: '[secret]' })
    hide(found, { value: '[secret]', text: '[secret]' })
  }
  return freeze(found)
}

/** Shows other fields to people; the object itself is as it was. */
function hide(object, fields) {
  Object.defineProperty(object, INSPECT, { value: (_depth, options, inspect) => inspect({ ...object, ...fields }, options) })
}

const methods = () => Object.freeze(native.methods())

module.exports = { Store, connect, methods }
