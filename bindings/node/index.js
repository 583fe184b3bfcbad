'use strict'

const { Context } = require('./lib/context.js')
const { NudgeError, errorCodes } = require('./lib/error.js')
const { Store, connect, methods } = require('./lib/store.js')

module.exports = { Store, Context, NudgeError, connect, methods, errorCodes }
