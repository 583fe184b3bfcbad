'use strict'

const native = require('../native.js')
const { ask, invalid } = require('./error.js')
const { read, write } = require('./json.js')
const { FIELDS, options } = require('./options.js')

/** Names that Node and people use, and those of semantics section 2. */
const SYSTEMS = new Map([['macos', 'darwin'], ['win32', 'windows']])

/** The system's name in a scope; what is no such name is left for the table to refuse. */
function system(given) {
  if (Array.isArray(given)) return given.map(system)
  return SYSTEMS.get(given) ?? given
}

/** A context, a scope or the value of a path as the table takes it. */
function place(given) {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  try {
    return given.os === undefined ? given : { ...given, os: system(given.os) }
  } catch (cause) {
    throw invalid('A field of an object cannot be read.', cause)
  }
}

/** A plain context as the table takes it; what is no object is left for the table to refuse. */
function contextOf(given) {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  return place(options(given, FIELDS.context, 'context field'))
}

let reveal
let isContext

/** Where a caller stands: checked once, immutable, quick to look up from. */
class Context {
  #json
  #env
  #told

  constructor(spec = {}) {
    if (isContext(spec)) {
      this.#json = spec.#json
      this.#env = spec.#env
      this.#told = spec.#told
    } else {
      this.#json = write(contextOf(spec), invalid)
      this.#told = read(ask(native.checkContext, this.#json))
    }
  }

  static {
    reveal = (context) => ({ json: context.#json, env: context.#env })
    // Asks no prototype, which might be a proxy's.
    isContext = (given) => typeof given === 'object' && given !== null && #json in given
  }

  /** The context of this process; fields of `spec` go before what is found, null means unknown. */
  static detect(spec = {}) {
    if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) throw invalid('Pass an object of context fields, or nothing.')
    const { cwd, ...given } = options(spec, FIELDS.context, 'context field')
    if (cwd !== undefined && cwd !== null && typeof cwd !== 'string') throw invalid('Pass cwd as an absolute folder.')
    // This thread's variables, read here: while another thread sets one, native code must not read them.
    const env = environment()
    const found = cwd === null ? { os: native.system() } : JSON.parse(ask(native.detect, cwd, env))
    const context = new Context({ ...found, ...given })
    // What a caller gives is all there is. Else all variables, as many as there are: of them a session is
    // told those alone that scopes mention.
    if (given.env === undefined) context.#env = env
    return context
  }

  get cwd() { return this.#told.cwd }
  get repo() { return this.#told.repo }
  get branch() { return this.#told.branch }
  get os() { return this.#told.os }
  get files_open() { return this.#told.files_open ?? [] }
  get filesOpen() { return this.files_open }

  /** Without the environment, whose values may be secrets. */
  toJSON() { return this.#told }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options, inspect) {
    return `Context ${inspect({ ...this.#told }, options)}`
  }
}

/** This thread's variables as JSON. Windows allows half characters; another thread may just have deleted one. */
function environment() {
  const whole = Object.entries(process.env).map(([name, value]) => [name.toWellFormed(), value?.toWellFormed()])
  return JSON.stringify(Object.fromEntries(whole))
}

module.exports = { Context, contextOf, isContext, place, reveal }
