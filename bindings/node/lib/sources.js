'use strict'

const { camel } = require('./options.js')

/** Leaves out params that are null, which means "not given". */
const given = (params) => Object.fromEntries(Object.entries(params).filter(([, value]) => value !== null))

/**
 * Makes an object for each source besides the hints, from the rows of `nudge.methods`, with a function for each method.
 * The hints' methods have no prefix and are the store's own. `call` gets the row and the params.
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
