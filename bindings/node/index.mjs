// The same objects as `require` gives, so that there is one `Store` and one `NudgeError` in a process.
import nudge from './index.js'

export const { AsyncStore, Store, Context, Tools, NudgeError, connect, methods, promises, tools, errorCodes } = nudge
