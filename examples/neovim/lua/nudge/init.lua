--- Hints beside the code: what `:Nudge`, `:NudgeSet` and `:NudgeBump` do.
local library = require("nudge.library")

local M = {}

--- Where this plugin stands: examples/neovim of a source tree.
local here = debug.getinfo(1, "S").source:sub(2):match("^(.*)/lua/nudge/init%.lua$")
local root = here and vim.fn.fnamemodify(here, ":p"):gsub("/$", "") .. "/../.."

--- After a session did not answer, nobody asks it unasked for so long.
local SILENCE_MS = 30000

local options = {
  --- "auto": the running session where there is one, else a store in this process; true; false.
  session = "auto",
  --- The runtime directory of the session; nil is the default one.
  runtime_dir = nil,
  --- The key that the status line shows.
  status_key = "build",
}
local store, silent_until = nil, 0

--- Changes the options above; `library` and `header` are paths. Call it before the first command.
function M.setup(given)
  options = vim.tbl_extend("force", options, given or {})
  store, silent_until = nil, 0
end

local function first_readable(paths)
  for _, path in ipairs(paths) do
    if vim.fn.filereadable(path) == 1 then
      return path
    end
  end
end

--- Where the library and its header are. `library` is a name for the system's loader where no file is known, `header`
--- is nil where there is none; `build` is the command that makes both, and `folder` where to type it.
function M.where()
  local suffix = vim.fn.has("mac") == 1 and "dylib" or "so"
  local built = { "release", "debug" }
  for i, profile in ipairs(built) do
    built[i] = ("%s/target/%s/libnudge.%s"):format(root, profile, suffix)
  end
  return {
    library = options.library or first_readable(built) or "nudge",
    header = options.header
      or first_readable({ root .. "/include/nudge.h", "/usr/local/include/nudge.h", "/usr/include/nudge.h" }),
    build = "cargo build --release -p nudge-capi",
    folder = vim.fn.simplify(root),
  }
end

--- The library, loaded; or nil and a sentence that says how to get it.
function M.load()
  local where = M.where()
  local loaded, why
  if where.header then
    loaded, why = pcall(library.load, where)
    why = not loaded and tostring(why):gsub("^[^ ]*:%d+: ", "")
  else
    why = "nudge.h is not found"
  end
  if loaded then
    return library
  end
  local advice = "Build libnudge by `%s` in %s, or say where it is by require('nudge').setup({ library = ..., header = ... });"
  return nil, ("%s. %s see `:help nudge-install`."):format(why:gsub("%.$", ""), advice:format(where.build, where.folder))
end

--- The store, opened at the first use: it, or nil and why not.
local function open()
  if store then
    return store
  end
  local loaded, why = M.load()
  if not loaded then
    return nil, { reason = "E_UNAVAILABLE", message = why }
  end
  local error
  if options.session then
    store, error = library.connect(options.runtime_dir)
  end
  if not store and options.session ~= true then
    store, error = library.new()
  end
  return store, error
end

--- The path of a buffer's file; nil for what is none: a terminal, a plugin's page, a name no context can hold.
local function path_of(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  local path = name ~= "" and not name:match("^%a[%w+.-]+://") and vim.fn.fnamemodify(name, ":p")
  -- JSON takes UTF-8 alone.
  local told = path and #path <= 4096 and not path:find("%c") and pcall(vim.fn.json_encode, path)
  return told and path or nil
end

--- The store that the commands use: it, or nil and why there is none.
function M.store()
  return open()
end

local function folder()
  local path = path_of(0)
  return path and vim.fn.fnamemodify(path, ":h") or vim.fn.getcwd()
end

--- The context of the current file.
local function context()
  local files = {}
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local path = vim.api.nvim_buf_is_loaded(buffer) and path_of(buffer)
    if path and #files < 256 then
      files[#files + 1] = path
    end
  end
  return library.context(folder(), files)
end

local function components(from)
  local names = {}
  for _, component in ipairs((from:call("list_components", {}) or { components = {} }).components) do
    names[component.name] = true
  end
  return names
end

--- The components of the current file, innermost first: the folders around it that have hints, and at last
--- the folder of the repository, else the current one.
local function around_file(known)
  local names, path = {}, folder()
  while path ~= vim.fn.fnamemodify(path, ":h") do
    local name = vim.fn.fnamemodify(path, ":t")
    if known[name] then
      names[#names + 1] = name
    end
    path = vim.fn.fnamemodify(path, ":h")
  end
  local git = vim.fn.finddir(".git", vim.fn.escape(folder(), " ,;") .. ";")
  local outermost = git ~= "" and vim.fn.fnamemodify(git, ":p:h:h") or vim.fn.getcwd()
  local last = vim.fn.fnamemodify(outermost, ":t")
  if not vim.tbl_contains(names, last) then
    names[#names + 1] = last
  end
  return names
end

--- `component/key`, or a key of a component of the current file: the names to try, and the key.
local function parse(from, word)
  local known, best = components(from), nil
  for name in pairs(known) do
    if vim.startswith(word, name .. "/") and #name > #(best or "") then
      best = name
    end
  end
  if best then
    return { best }, word:sub(#best + 2)
  end
  local given, key = word:match("^([^/]+)/(.+)$")
  if given then
    return { given }, key
  end
  return around_file(known), word
end

--- The innermost hint of a key that fits: it, its component and its key; or nil and why not.
local function find(from, around, word)
  local names, key = parse(from, word)
  local first
  for _, name in ipairs(names) do
    local found, error = from:get(name, key, around)
    if found then
      return found, name, key
    end
    first = first or error
  end
  return nil, first
end

local function say(lines)
  vim.api.nvim_echo({ { table.concat(lines, "\n") } }, false, {})
end

local function complain(error)
  vim.api.nvim_echo({ { "nudge: " .. error.message, "ErrorMsg" } }, true, {})
end

--- Calls `verb` with the store, the context and what else is given; tells the user why it failed.
local function try(verb, ...)
  local from, error = open()
  local around
  if from then
    around, error = context()
  end
  local done
  if around then
    done, error = verb(from, around, ...)
  end
  if not done then
    complain(error)
  end
  M.refresh()
  return done
end

local function text(value)
  if type(value) ~= "table" then
    return value
  end
  return value.cmd or value.abs or value.body or vim.fn.json_encode(value.data)
end

--- `:Nudge`: every hint of the file's components that applies here.
local function list(from, around)
  local lines, names = {}, around_file(components(from))
  for _, name in ipairs(names) do
    local found, error = from:call("query", { component = name, limit = 100 }, around)
    if not found then
      return nil, error
    end
    for _, row in ipairs(found.hints) do
      lines[#lines + 1] = ("%s/%s: %s"):format(row.hint.component, row.hint.key, text(row.hint.value))
    end
  end
  say(#lines > 0 and lines or { "nothing is known of " .. table.concat(names, ", ") .. " here" })
  return true
end

--- What people may see of a hint.
local function shown(found)
  return found.secret and "[secret]" or found.value
end

--- `:Nudge {key}`: the hint, and why it is this one.
function M.show(word)
  if word == "" then
    return try(list)
  end
  return try(function(from, around)
    local found, name, key = find(from, around, word)
    if not found then
      return nil, name
    end
    local lines = { ("%s/%s: %s"):format(name, key, shown(found)) }
    for _, reason in ipairs(found.reasons) do
      lines[#lines + 1] = "  " .. reason
    end
    lines[#lines + 1] = ("  score %.2f"):format(found.score)
    say(lines)
    return found
  end)
end

--- `:NudgeSet {key} {value}`
function M.set(words)
  local word, value = words:match("^(%S+)%s+(.+)$")
  if not word then
    return complain({ message = "Give a key and a value: `:NudgeSet build make api`." })
  end
  return try(function(from, around)
    local names, key = parse(from, word)
    local found, where = find(from, around, word)
    local name = found and where or names[1]
    local params = { component = name, key = key, value = value, meta = { source = "user", added_by = "neovim" } }
    -- The one that `:Nudge` shows here is the one that is meant.
    params.variant = found and found.variant or nil
    local done, error = from:call("set_hint", params)
    if done then
      say({ ("stored %s/%s (v%d)"):format(name, key, done.hint.version) })
    end
    return done, error
  end)
end

--- `:NudgeBump {key}`: it worked.
function M.bump(word)
  return try(function(from, around)
    local found, name, key = find(from, around, word)
    if not found then
      return nil, name
    end
    local done, error = from:call("bump", { component = name, key = key }, around)
    if done then
      local uses = done.hint.use_count
      say({ ("%s/%s was used %s"):format(name, key, uses == 1 and "once" or uses .. " times") })
    end
    return done, error
  end)
end

--- Completes keys of the current file's components, and `component/key` of all.
function M.complete(typed)
  local from = open()
  local found = from and from:call("query", { limit = 1000, include_ineligible = true })
  if not found then
    return {}
  end
  local own, words = {}, {}
  for _, name in ipairs(around_file(components(from))) do
    own[name] = true
  end
  for _, row in ipairs(found.hints) do
    words[row.hint.component .. "/" .. row.hint.key] = true
    if own[row.hint.component] then
      words[row.hint.key] = true
    end
  end
  return vim.tbl_filter(function(word)
    return vim.startswith(word, typed)
  end, vim.fn.sort(vim.tbl_keys(words)))
end

--- Looks up what the status line of the current buffer shows.
function M.refresh()
  if vim.loop.now() < silent_until then
    return
  end
  local status, error = "", nil
  local from = open()
  local around = from and context()
  if around then
    local found
    found, error = find(from, around, options.status_key)
    status = found and shown(found):gsub("%s+", " ") or ""
  end
  if error and error.reason == "E_UNAVAILABLE" then
    silent_until = vim.loop.now() + SILENCE_MS
  end
  vim.b.nudge_status = status
end

--- For 'statusline': `%{v:lua.require'nudge'.statusline()}`. Looks nothing up by itself.
function M.statusline()
  local status = vim.b.nudge_status
  return status and status ~= "" and ("nudge: " .. status) or ""
end

return M
