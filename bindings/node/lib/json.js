'use strict'

/** So much of a name is told. */
const MAX_NAME = 64

const kind = (value) => Object.prototype.toString.call(value)

/**
 * Thrown by `write`: what cannot be said in JSON is refused, not left out or turned into null. As for
 * JSON.stringify, a field that is undefined is not there, and an object with toJSON, such as a Date, is what
 * that gives.
 */
class NotJson extends Error {}

const PLAIN = 'Use strings, numbers, booleans, arrays and plain objects; other objects cannot be passed on.'

/** JSON.stringify calls it on the object that holds `value`. What is refused is named by its field, never by its value. */
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

/** `value` as JSON text. Throws what `refuse` makes of a message. */
function write(value, refuse) {
  let text
  try {
    text = JSON.stringify(value, plain)
  } catch (cause) {
    if (cause instanceof NotJson) throw refuse(cause.message)
    throw refuse('This cannot be written as JSON; use strings, numbers, booleans, arrays and plain objects.', cause)
  }
  // Of undefined alone.
  return text ?? 'null'
}

/** Freezes what JSON can hold, all the way down. */
function freeze(value) {
  if (typeof value === 'object' && value !== null) {
    for (const name of Object.keys(value)) freeze(value[name])
    Object.freeze(value)
  }
  return value
}

/** JSON text as frozen plain objects. */
const read = (text) => freeze(JSON.parse(text))

module.exports = { freeze, read, write }
