--- libnudge over LuaJIT's FFI: the declarations are read from include/nudge.h, as it stands.
local ffi = require("ffi")

local M = {}

local Store = {}
Store.__index = Store

--- The header without what only a preprocessor reads.
local function declarations(header)
  local out, for_cplusplus = {}, false
  for line in header:gmatch("[^\n]*") do
    if line:match("^#ifdef __cplusplus") then
      for_cplusplus = true
    elseif line:match("^#endif") and for_cplusplus then
      for_cplusplus = false
    elseif not for_cplusplus and not line:match("^%s*#") then
      out[#out + 1] = line
    end
  end
  return table.concat(out, "\n")
end

--- Loads the library. `options.header` and `options.library` are paths.
function M.load(options)
  local file, why = io.open(options.header)
  if not file then
    error(why, 0)
  end
  local header = file:read("*a")
  file:close()
  if not pcall(ffi.typeof, "nudge_store *") then
    ffi.cdef(declarations(header))
  end
  local lib = ffi.load(options.library)
  local wanted = tonumber(header:match("#define NUDGE_ABI_VERSION (%d+)"))
  if lib.nudge_abi_version() ~= wanted then
    error("libnudge is of another version than nudge.h; build both from one tree")
  end
  M.lib = lib
  return M
end

--- A text for C. It points into the Lua string, which the caller has to keep for as long.
local function to_c(text)
  if text == nil then
    return ffi.new("nudge_str")
  end
  return ffi.new("nudge_str", ffi.cast("const char *", text), #text)
end

local function to_lua(text)
  return text.ptr ~= nil and ffi.string(text.ptr, text.len) or ""
end

--- Calls `fn` with the places of a result and of an error: the result, or nil and
--- `{ code, reason, message }`.
local function answer(kind, free, fn)
  local out = ffi.new(kind .. " *[1]")
  local failure = ffi.new("nudge_error *[1]")
  if fn(out, failure) == M.lib.NUDGE_OK then
    return ffi.gc(out[0], free)
  end
  local error = ffi.gc(failure[0], M.lib.nudge_error_free)
  return nil,
    {
      code = M.lib.nudge_error_code(error),
      reason = to_lua(M.lib.nudge_error_reason(error)),
      message = to_lua(M.lib.nudge_error_message(error)),
    }
end

local function new_store(make)
  local handle, error = answer("nudge_store", M.lib.nudge_store_free, make)
  if not handle then
    return nil, error
  end
  return setmetatable({ handle = handle }, Store)
end

--- A store in this process.
function M.new()
  return new_store(function(out, error)
    return M.lib.nudge_store_new(nil, out, error)
  end)
end

--- The session that the machine's `nudge serve` processes share; `directory` may be nil.
function M.connect(directory)
  local name = "neovim"
  return new_store(function(out, error)
    return M.lib.nudge_connect(to_c(directory), to_c(name), out, error)
  end)
end

--- Where a file in `folder` stands, while the files `open` are open.
function M.context(folder, open)
  local list = ffi.new("nudge_str[?]", math.max(#open, 1))
  for i, path in ipairs(open) do
    list[i - 1] = to_c(path)
  end
  local files = ffi.new("nudge_strs", #open > 0 and list or nil, #open)
  return answer("nudge_context", M.lib.nudge_context_free, function(out, error)
    return M.lib.nudge_context_detect(to_c(folder), files, out, error)
  end)
end

--- The best hint of a key that fits: `{ value, score, reasons, variant, secret }`, or nil and why not.
function Store:get(component, key, context)
  local params = ffi.new("nudge_get_params")
  params.struct_size = ffi.sizeof(params)
  params.component, params.key, params.context = to_c(component), to_c(key), context
  local found, error = answer("nudge_match", M.lib.nudge_match_free, function(out, failure)
    return M.lib.nudge_get(self.handle, params, out, failure)
  end)
  if not found then
    return nil, error
  end
  local reasons = {}
  for at = 0, tonumber(M.lib.nudge_match_reason_count(found)) - 1 do
    reasons[#reasons + 1] = to_lua(M.lib.nudge_match_reason(found, at))
  end
  return {
    value = to_lua(M.lib.nudge_match_value(found)),
    score = M.lib.nudge_match_score(found),
    reasons = reasons,
    variant = to_lua(M.lib.nudge_match_variant(found)),
    secret = M.lib.nudge_match_is_secret(found) == 1,
  }
end

--- Any method of the table by its name, such as `query`: its result as a table, or nil and why not.
function Store:call(method, params, context)
  local name = "nudge." .. method
  local ok, text = pcall(vim.fn.json_encode, next(params) and params or vim.empty_dict())
  if not ok then
    return nil, { reason = "E_INVALID", message = "What you gave is not UTF-8; convert it first." }
  end
  local result, error = answer("nudge_result", M.lib.nudge_result_free, function(out, failure)
    return M.lib.nudge_call(self.handle, to_c(name), to_c(text), context, out, failure)
  end)
  if not result then
    return nil, error
  end
  return vim.fn.json_decode(to_lua(M.lib.nudge_result_json(result)))
end

return M
