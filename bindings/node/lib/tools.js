'use strict'

const native = require('../native.js')
const { ask, invalid } = require('./error.js')
const { read, write } = require('./json.js')
const { kindOf, options } = require('./options.js')

const unused = new FinalizationRegistry((number) => native.forgetTools(number))

/** The tools of a store for a model; they answer its calls. */
class Tools {
  #number
  #forms
  /** Calls a native function with the numbers of the store and the view. */
  #ask

  constructor(store, number, asked) {
    this.#number = number
    this.#ask = asked
    this.#forms = read(ask(native.toolForms, number))
    unused.register(this, number)
    Object.defineProperty(this, 'store', { value: store })
  }

  get names() { return this.#forms.names }
  get size() { return this.names.length }
  has(name) { return this.names.includes(name) }
  // The copy belongs to the caller, who may add fields for a request.
  anthropic() { return structuredClone(this.#forms.anthropic) }
  openai() { return structuredClone(this.#forms.openai) }
  responses() { return structuredClone(this.#forms.responses) }

  call(name, args) {
    if (typeof name !== 'string') throw invalid(`The name of a tool must be a string, not ${kindOf(name)}.`)
    const told = typeof args === 'string' ? args : write(args ?? {}, invalid)
    return read(this.#ask(native.callTool, this.#number, name.toWellFormed(), told.toWellFormed()))
  }

  answer(said) {
    const answered = this.#ask(native.answerTool, this.#number, write(said ?? null, invalid))
    return answered === null || answered === undefined ? null : JSON.parse(answered)
  }

  [Symbol.iterator]() { return this.names[Symbol.iterator]() }

  [Symbol.for('nodejs.util.inspect.custom')]() {
    return `Tools { ${this.size} of them }`
  }
}

module.exports = { Tools }
