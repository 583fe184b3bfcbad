'use strict'

const { Context } = require('./lib/context.js')
const { NudgeError, errorCodes } = require('./lib/error.js')
const { Store, connect, methods, tools } = require('./lib/store.js')
const { Tools } = require('./lib/tools.js')

module.exports = { Store, Context, Tools, NudgeError, connect, methods, tools, errorCodes }
