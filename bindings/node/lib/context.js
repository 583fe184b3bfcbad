'use strict'

const native = require('../native.js')
const { ask, invalid } = require('./error.js')
const { read, write } = require('./json.js')
const { FIELDS, options } = require('./options.js')

/** Other names of systems, with the names of semantics section 2. */
const SYSTEMS = new Map([['macos', 'darwin'], ['win32', 'windows']])

/** Returns the system's name in a scope. An unknown name stays as it is, and the table refuses it. */
function system(given) {
  if (Array.isArray(given)) return given.map(system)
  return SYSTEMS.get(given) ?? given
}

/** Converts a context, a scope or the value of a path to the form of the method table. */
function place(given) {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  try {
    return given.os === undefined ? given : { ...given, os: system(given.os) }
  } catch (cause) {
    throw invalid('A field of an object cannot be read.', cause)
  }
}

/**
 * Converts a plain context to the form of the method table. A value that is no object stays, and the table refuses it.
 */
function contextOf(given) {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  return place(options(given, FIELDS.context, 'context field'))
}

let reveal
let isContext

/** The context of a caller: checked once, immutable, and quick for lookups. */
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
    // This check reads no prototype, because a proxy might answer that.
    isContext = (given) => typeof given === 'object' && given !== null && #json in given
  }

  /** Detects the context of this process. Fields of `spec` override detected ones; null means unknown. */
  static detect(spec = {}) {
    if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) throw invalid('Pass an object of context fields, or nothing.')
    const { cwd, ...given } = options(spec, FIELDS.context, 'context field')
    if (cwd !== undefined && cwd !== null && typeof cwd !== 'string') throw invalid('Pass cwd as an absolute folder.')
    // Reads this thread's variables in JavaScript: native code must not read them while another thread sets one.
    const env = environment()
    const found = cwd === null ? { os: native.system() } : JSON.parse(ask(native.detect, cwd, env))
    const context = new Context({ ...found, ...given })
    // A given environment is used alone. Else all variables count, but a session gets only those that scopes mention.
    if (given.env === undefined) context.#env = env
    return context
  }

  get cwd() { return this.#told.cwd }
  get repo() { return this.#told.repo }
  get branch() { return this.#told.branch }
  get os() { return this.#told.os }
  get files_open() { return this.#told.files_open ?? [] }
  get filesOpen() { return this.files_open }

  /** Leaves the environment out, because its values may be secrets. */
  toJSON() { return this.#told }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options, inspect) {
    return `Context ${inspect({ ...this.#told }, options)}`
  }
}

/**
 * Returns this thread's variables as JSON. Windows allows half characters, and another thread may just have deleted
 * one.
 */
function environment() {
  const whole = Object.entries(process.env).map(([name, value]) => [name.toWellFormed(), value?.toWellFormed()])
  return JSON.stringify(Object.fromEntries(whole))
}

module.exports = { Context, contextOf, isContext, place, reveal }
