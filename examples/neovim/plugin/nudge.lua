if vim.g.loaded_nudge then
  return
end
vim.g.loaded_nudge = true

local function command(name, nargs, run)
  vim.api.nvim_create_user_command(name, function(given)
    run(require("nudge"), given.args)
  end, {
    nargs = nargs,
    complete = function(typed, line)
      -- The first word is a key, the rest is a value.
      return line:match("^%s*%S+%s+%S*$") and require("nudge").complete(typed) or {}
    end,
  })
end

command("Nudge", "?", function(nudge, word)
  nudge.show(word)
end)
command("NudgeSet", "+", function(nudge, words)
  nudge.set(words)
end)
command("NudgeBump", 1, function(nudge, word)
  nudge.bump(word)
end)

vim.api.nvim_create_autocmd({ "BufEnter", "DirChanged", "FocusGained" }, {
  group = vim.api.nvim_create_augroup("nudge", {}),
  callback = function()
    -- Nothing is loaded before somebody wants it: a command, or a status line that asks.
    if package.loaded["nudge"] then
      require("nudge").refresh()
    end
  end,
})
