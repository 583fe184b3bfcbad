'use strict'

const native = require('../native.js')
const { freeze } = require('./json.js')

/** Error code to JSON-RPC code; if two kinds share a code, the first one counts. */
const errorCodes = Object.freeze(JSON.parse(native.errors()).reduce((all, [code, number]) => ({ [code]: number, ...all }), {}))

/** A refused call. Nothing was changed, except possibly when no server answered; `message` says what to do. */
class NudgeError extends Error {
  constructor(code, message, data = {}, options = {}) {
    super(message, options)
    this.code = code
    this.rpcCode = options.rpcCode ?? errorCodes[code]
    this.data = freeze({ reason: code, ...data })
  }

  get field() {
    return this.data.field
  }
}
// The name is on the prototype, as for JavaScript's own errors.
Object.defineProperty(NudgeError.prototype, 'name', { value: 'NudgeError', configurable: true, writable: true })

/** Calls a native function. Its refusals are errors whose message is the JSON of an error object. */
function ask(call, ...given) {
  try {
    return call(...given)
  } catch (thrown) {
    throw refusal(thrown) ?? thrown
  }
}

function refusal(thrown) {
  let object
  try {
    object = JSON.parse(thrown.message)
  } catch {
    // The error is a defect of this package, such as a panic, and not a refusal.
    return undefined
  }
  if (typeof object?.data?.reason !== 'string') return undefined
  return new NudgeError(object.data.reason, object.message, object.data, { rpcCode: object.code })
}

function invalid(message, cause) {
  return new NudgeError('E_INVALID', message, {}, cause === undefined ? {} : { cause })
}

module.exports = { NudgeError, errorCodes, ask, invalid, refusal }
