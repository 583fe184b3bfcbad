// Exports the same objects as `require`, so that a process has only one `Store` and one `NudgeError`.
import nudge from './index.js'

export const { AsyncStore, Store, Context, Tools, NudgeError, connect, methods, promises, tools, errorCodes } = nudge
