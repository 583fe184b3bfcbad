--- Types the plugin's commands in a headless editor. NUDGE_CASE is one of the cases at the end.
local case = os.getenv("NUDGE_CASE")
local nudge = case ~= "lazy" and require("nudge")

local function options(session)
  return {
    library = os.getenv("NUDGE_LIBRARY"),
    header = os.getenv("NUDGE_HEADER"),
    session = session,
    runtime_dir = os.getenv("NUDGE_RUNTIME_DIR"),
  }
end

local count = 0
local function equal(got, wanted, what)
  count = count + 1
  if not vim.deep_equal(got, wanted) then
    error(("%s\n  wanted %s\n  got    %s"):format(what, vim.inspect(wanted), vim.inspect(got)), 2)
  end
end

--- What a command shows; `{}` in what is wanted stands for anything.
local function shows(command, wanted)
  local got = vim.api.nvim_exec(command, true)
  local pattern = "^" .. vim.pesc(wanted):gsub("{}", ".*") .. "$"
  count = count + 1
  if not got:match(pattern) then
    error(("%s\n  wanted %s\n  got    %s"):format(command, wanted, got), 2)
  end
end

local function edit(path)
  vim.cmd("edit " .. vim.fn.fnameescape(os.getenv("NUDGE_PROJECT") .. path))
end

local function story()
  edit("/api/src/main.rs")
  shows("Nudge build", "nudge: No such hint is stored; {}")
  shows("Nudge", "nothing is known of project here")
  shows("NudgeSet build  make   all", "stored project/build (v1)")
  shows("NudgeSet api/test cargo test -p api", "stored api/test (v1)")
  shows("NudgeSet test cargo test", "stored api/test (v2)")
  shows("Nudge test", "api/test: cargo test\n  no scope: applies everywhere\n  open file {}/api/src/main.rs is in api\n  score 0.{}")
  shows("Nudge build", "project/build: make   all\n{}")
  shows("Nudge", "api/test: cargo test\nproject/build: make   all")
  shows("NudgeBump test", "api/test was used once")
  shows("NudgeBump api/test", "api/test was used 2 times")
  shows("Nudge api/test", "{}used 2 times{}")
  equal(nudge.statusline(), "nudge: make all", "the status line, white space folded")
  equal(nudge.complete(""), { "api/test", "build", "project/build", "test" }, "all")
  equal(nudge.complete("t"), { "test" }, "by its beginning")
  equal(vim.fn.getcompletion("Nudge a", "cmdline"), { "api/test" }, "of the command")
  equal(vim.fn.getcompletion("NudgeSet build m", "cmdline"), {}, "not of a value")
  -- The variant that is shown here is the one that is corrected.
  local store = nudge.store()
  assert(store:call("set_hint", { component = "api", key = "run", value = "one" }))
  local scoped = { component = "api", key = "run", value = "here", meta = { scope = { cwd_glob = "**/api/**" } } }
  assert(store:call("set_hint", scoped))
  shows("NudgeSet run corrected", "stored api/run (v2)")
  shows("Nudge run", "api/run: corrected\n  cwd matched {}")
  equal(store:get("api", "run", nil).value, "one", "the other variant stays")
  -- A secret is shown to nobody.
  local secret = { component = "api", key = "token", value = "hush-hush", meta = { sensitivity = "secret" } }
  assert(store:call("set_hint", secret))
  shows("Nudge token", "api/token: [secret]\n{}")
  for _, key in ipairs({ "run", "token" }) do
    assert(store:call("delete_hint", { component = "api", key = key, all = true }))
  end
  -- Elsewhere.
  edit("/web/index.html")
  shows("Nudge test", "nudge: No such hint is stored; {}")
  equal(nudge.complete("te"), {}, "the key belongs to another folder")
end

--- What must be refused is refused in words, and nothing else happens.
local function bad_calls()
  edit("/api/src/main.rs")
  local before = vim.api.nvim_exec("Nudge", true)
  shows("NudgeSet build", "nudge: Give a key and a value: {}")
  shows("NudgeSet " .. ("k"):rep(300) .. " x", "nudge: `key` must have 1 to 256 bytes{}")
  -- Put together here, so that no file holds what looks like a credential.
  shows("NudgeSet token export API_TOKEN=" .. ("ghp_" .. ("a1B2"):rep(9)), "nudge: {}ecret{}")
  shows("NudgeBump nothing", "nudge: No such hint is stored; {}")
  equal(pcall(vim.cmd, "NudgeBump"), false, "an argument is missing")
  local library = require("nudge.library")
  local store = assert(library.new())
  local found, error = store:call("no_such_method", {})
  equal({ found, error.reason }, { nil, "E_UNKNOWN_METHOD" }, "a method")
  found, error = store:call("query", { limit = "many" })
  equal({ found, error.reason }, { nil, "E_INVALID" }, "a param")
  found, error = store:get("api", "te\255st", nil)
  equal({ found, error.reason }, { nil, "E_INVALID" }, "not UTF-8")
  found, error = store:get(nil, "k", nil)
  equal({ found, error.reason }, { nil, "E_INVALID" }, "no component")
  found, error = library.context("relative", {})
  equal({ found, error.reason }, { nil, "E_INVALID" }, "a relative folder")
  shows("NudgeSet build \255\254", "nudge: What you gave is not UTF-8; {}")
  shows("Nudge \255", "nudge: {}UTF-8{}")
  equal(vim.api.nvim_exec("Nudge", true), before, "nothing was changed")
  -- Buffers that are no files hold up nobody.
  edit("/api/caf\233.txt")
  vim.cmd("terminal true")
  shows("Nudge nothing", "nudge: No such hint is stored; {}")
  edit("/api/src/main.rs")
  equal(vim.api.nvim_exec("Nudge", true), before, "with odd buffers loaded")
end

--- The lines that `:checkhealth nudge` shows.
local function health()
  vim.cmd("checkhealth nudge")
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  vim.cmd("bwipeout!")
  return text
end

local function says(text, part)
  count = count + 1
  if not text:find(part, 1, true) then
    error(("no %s in\n%s"):format(part, text), 2)
  end
end

--- The page that `:help` shows, and the tag that it stands at.
local function help(tag)
  vim.cmd("help " .. tag)
  local page, line = vim.api.nvim_buf_get_name(0), vim.api.nvim_get_current_line()
  vim.cmd("helpclose")
  return page, line
end

local cases = {}

function cases.own()
  nudge.setup(options(false))
  story()
  bad_calls()
  says(health(), "the hints are those of this editor, until it closes: 2")
  nudge.setup(options("auto"))
  shows("NudgeSet build make", "stored project/build (v1)")
end

function cases.session()
  nudge.setup(options("auto"))
  story()
  bad_calls()
  says(health(), "the hints are those of the running session (process ")
  -- The command line sees what the editor stored.
  local out = vim.fn.system({ os.getenv("NUDGE_BIN"), "get", "api", "test", "--value" })
  equal(out, "cargo test\n", "from outside")
  vim.fn.system({ os.getenv("NUDGE_BIN"), "stop" })
  equal(vim.v.shell_error, 0, "nudge stop")
  shows("Nudge test", "nudge: {}nudge serve{}")
  nudge.setup(options(true))
  shows("Nudge test", "nudge: {}nudge serve{}")
end

function cases.missing()
  local given = options(false)
  given.library = "/nowhere/libnudge.so"
  nudge.setup(given)
  local root = vim.fn.getcwd()
  local how = "Build libnudge by `cargo build --release -p nudge-capi` in " .. root
  shows("Nudge build", "nudge: {}libnudge.so{}. " .. how .. "{}`:help nudge-install`.")
  equal(nudge.statusline(), "", "the status line is empty")
  local text = health()
  says(text, "library: /nowhere/libnudge.so")
  says(text, how)
  says(text, ("cd %s && cargo build --release -p nudge-capi"):format(root))
  given.library, given.header = os.getenv("NUDGE_LIBRARY"), "/nowhere/nudge.h"
  nudge.setup(given)
  shows("Nudge build", "nudge: {}/nowhere/nudge.h{}" .. how .. "{}")
end

function cases.help()
  for tag, at in pairs({
    ["nudge"] = "*nudge*",
    ["nudge-install"] = "*nudge-install*",
    ["nudge.setup()"] = "*nudge.setup()*",
    ["nudge-health"] = "*nudge-health*",
  }) do
    local page, line = help(tag)
    says(page, "/examples/neovim/doc/nudge.txt")
    says(line, at)
  end
  -- Every command has its tag, and there are no others.
  local commands, described = {}, {}
  for name in pairs(vim.api.nvim_get_commands({})) do
    if vim.startswith(name, "Nudge") then
      commands[":" .. name] = true
    end
  end
  for line in io.lines("examples/neovim/doc/tags") do
    local command = line:match("^:%w+")
    if command then
      described[command] = true
    end
  end
  equal(described, commands, "the commands")
end

--- The block of the README and of the help page, called as lazy.nvim calls it.
function cases.lazy()
  local readme = io.open("examples/neovim/README.md"):read("*a")
  local block = assert(readme:match("```lua\n(.-)```"), "a block of Lua")
  local page = io.open("examples/neovim/doc/nudge.txt"):read("*a"):gsub("\n    ", "\n")
  says(page, block)
  local spec = assert(loadstring("return " .. block))()
  equal(vim.fn.exists(":Nudge"), 0, "nothing is there yet")
  spec.config({ dir = vim.fn.getcwd() }, {})
  equal(vim.fn.exists(":Nudge"), 2, "the commands are there")
  says(help("nudge"), "/examples/neovim/doc/nudge.txt")
  nudge = require("nudge")
  equal(nudge.where().build, spec.build, "what is built is what is looked for")
  equal(nudge.where().folder, vim.fn.getcwd(), "and there")
  nudge.setup(options(false))
  says(health(), "the hints are those of this editor")
end

local ok, why = pcall(cases[case])
io.stdout:write(ok and ("neovim, %s: %d checks passed\n"):format(case, count) or ("neovim, %s: %s\n"):format(case, why))
vim.cmd(ok and "qall!" or "cquit!")
