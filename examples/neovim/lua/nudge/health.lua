--- `:checkhealth nudge`: whether the library is there, and whose hints are shown.
local nudge = require("nudge")

local M = {}

--- What Neovim calls them, before 0.10 and since.
local function say(kind, ...)
  local health = vim.health or require("health")
  return (health[kind] or health["report_" .. kind])(...)
end

function M.check()
  say("start", "nudge")
  if not jit then
    return say("error", "This Neovim has no LuaJIT, which calls the library.", { "Install a Neovim with LuaJIT." })
  end
  say("ok", "LuaJIT calls the library")
  local where = nudge.where()
  say("info", ("library: %s, header: %s"):format(where.library, where.header or "not found"))
  local library, why = nudge.load()
  if not library then
    return say("error", why, { ("cd %s && %s"):format(where.folder, where.build), ":help nudge-install" })
  end
  say("ok", ("libnudge is loaded, version %d of its interface"):format(library.lib.nudge_abi_version()))
  local store, error = nudge.store()
  if not store then
    return say("error", error.message, { "Start a session by `nudge serve`, or leave `session` at its default." })
  end
  local status, failed = store:call("status", {})
  if not status then
    return say("error", failed.message)
  end
  -- A store of this process has no pid.
  local whose = status.pid and ("of the running session (process %d)"):format(status.pid) or "of this editor, until it closes"
  say("ok", ("the hints are those %s: %d"):format(whose, status.hints))
end

return M
