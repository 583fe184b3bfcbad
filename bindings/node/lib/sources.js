'use strict'

const { camel } = require('./options.js')

/** What a caller gives of params: null is "not given", as everywhere on the wire. */
const given = (params) => Object.fromEntries(Object.entries(params).filter(([, value]) => value !== null))

/**
 * The sources besides the hints, of what `nudge.methods` tells: an object for each, with a function for each of its
 * methods. The hints' have no prefix, and are the store's own. `call` gets the row and the params.
 */
function namespaces(rows, call) {
  const all = new Map()
  for (const row of rows) {
    const prefix = `nudge.${row.source}.`
    if (row.source === undefined || !row.name.startsWith(prefix)) continue
    if (!all.has(row.source)) all.set(row.source, {})
    all.get(row.source)[camel(row.name.slice(prefix.length))] = (params) => call(row, params)
  }
  all.forEach(Object.freeze)
  return all
}

module.exports = { given, namespaces }
