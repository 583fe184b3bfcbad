'use strict'

/** The number of characters of a name that a message repeats. */
const MAX_NAME = 64

const kind = (value) => Object.prototype.toString.call(value)

/**
 * `write` throws this for a value that JSON cannot hold, instead of leaving it out or writing null. As in
 * JSON.stringify, a field that is undefined is left out, and an object with toJSON, such as a Date, is replaced by that
 * method's result.
 */
class NotJson extends Error {}

const PLAIN = 'Use strings, numbers, booleans, arrays and plain objects; other objects cannot be passed on.'

/** JSON.stringify calls it on the object that holds `value`. The message names a refused field, and never its value. */
function plain(name, value) {
  const where = name === '' ? 'It' : `\`${name.slice(0, MAX_NAME)}\``
  switch (typeof value) {
    case 'number':
      if (!Number.isFinite(value)) throw new NotJson(`A number must be finite: ${where} is ${value}.`)
      break
    case 'undefined':
      if (Array.isArray(this)) throw new NotJson('An array may hold neither undefined nor a hole; use null.')
      break
    case 'bigint':
    case 'function':
    case 'symbol':
      throw new NotJson(`${where} is a ${typeof value}, which cannot be passed on; use strings, numbers, booleans, arrays and plain objects.`)
    case 'object':
      if (value !== null) checkObject(where, value)
  }
  return value
}

function checkObject(where, value) {
  const what = kind(value)
  if (!Array.isArray(value) && what !== '[object Object]') throw new NotJson(`${where} is ${what.slice(8, -1).slice(0, MAX_NAME)}. ${PLAIN}`)
  for (const symbol of Object.getOwnPropertySymbols(value)) {
    if (Object.prototype.propertyIsEnumerable.call(value, symbol)) throw new NotJson('The name of a field must be a string, and no symbol.')
  }
}

/** Writes `value` as JSON text. Throws the result of `refuse`, which gets a message. */
function write(value, refuse) {
  let text
  try {
    text = JSON.stringify(value, plain)
  } catch (cause) {
    if (cause instanceof NotJson) throw refuse(cause.message)
    throw refuse('This cannot be written as JSON; use strings, numbers, booleans, arrays and plain objects.', cause)
  }
  // Only undefined has no text.
  return text ?? 'null'
}

/** Freezes a JSON value with everything in it. */
function freeze(value) {
  if (typeof value === 'object' && value !== null) {
    for (const name of Object.keys(value)) freeze(value[name])
    Object.freeze(value)
  }
  return value
}

/** Parses JSON text to frozen plain objects. */
const read = (text) => freeze(JSON.parse(text))

module.exports = { freeze, read, write }
