// The same by `require`.
import nudge = require('nudge-hints')

const store: nudge.Store = new nudge.Store()
const found: nudge.Match | null = store.get('api', 'build', nudge.Context.detect())
const code: nudge.ErrorCode | undefined = found ? undefined : new nudge.NudgeError('E_NOT_FOUND', 'No.').code
export = { code }
