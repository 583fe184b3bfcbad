'use strict'

const native = require('../native.js')
const { invalid } = require('./error.js')

/** The names of the params of each method, and the fields of `context`, `scope` and `meta`, from the method table. */
const FIELDS = JSON.parse(native.fields())

const camel = (name) => name.replace(/[-_.]+(\w)/g, (_, letter) => letter.toUpperCase())

/** Returns a word for the kind of a value; the value itself may be a secret and is not repeated. */
function kindOf(value) {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (Number.isNaN(value)) return 'NaN'
  const kind = typeof value
  return kind === 'undefined' ? 'undefined' : `${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind}`
}

/** Returns the options as an object. */
function fields(options) {
  if (options === undefined || options === null) return {}
  if (typeof options !== 'object' || Array.isArray(options)) throw invalid(`Pass the options as an object, not ${kindOf(options)}.`)
  return options
}

/**
 * Returns the options by their names in the method table. JavaScript's spelling is accepted as well: `allowSecret` is
 * `allow_secret`. An unknown option is refused. `what` is the kind of name.
 */
function options(given, known, what = 'option') {
  const read = fields(given)
  let out = read
  try {
    for (const name of Object.keys(read)) {
      if (known.includes(name)) continue
      const meant = known.find((one) => camel(one) === name)
      if (meant === undefined) throw invalid(native.unknown(what, name.toWellFormed(), known.map(camel)))
      if (out === read) out = { ...read }
      if (Object.hasOwn(read, meant)) throw invalid(`${name} and ${meant} are the same ${what}; give it once.`)
      out[meant] = read[name]
      delete out[name]
    }
    return out
  } catch (cause) {
    throw cause?.code === 'E_INVALID' ? cause : invalid('A field of an object cannot be read.', cause)
  }
}

/** Returns the options of a method; its arguments are no options. */
function optionsOf(method, given, ...args) {
  for (const name of args) {
    if (name in fields(given)) throw invalid(`${name} is an argument of its own, and no option.`)
  }
  return options(given, FIELDS[method])
}

module.exports = { FIELDS, camel, fields, kindOf, options, optionsOf }
