'use strict'

const { Context } = require('./lib/context.js')
const { NudgeError, errorCodes } = require('./lib/error.js')
const { AsyncStore, Store, connect, methods, promises, tools } = require('./lib/store.js')
const { Tools } = require('./lib/tools.js')

module.exports = { AsyncStore, Store, Context, Tools, NudgeError, connect, methods, promises, tools, errorCodes }
