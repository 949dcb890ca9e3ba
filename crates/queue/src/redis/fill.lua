-- Replaces the window of a queue by the jobs that the store had, with those that were added since and without those that
-- were popped since. ARGV: prefix, queue, count of jobs that were left to the store before it was read, priority from
-- which downwards the store has more ('' = it has none), number of ids in the window then, these ids, and messages.
-- Returns whether the window is short: jobs were left to the store meanwhile.
local window, messages_at, gone, seen, added = read_window(ARGV[2]), 6 + ARGV[5], {}, {}, {}
for at = 6, #ARGV do
  local set = at < messages_at and gone or seen
  set[at < messages_at and ARGV[at] or run_id(ARGV[at])] = true
end
for _, message in ipairs(call('LRANGE', window.key, 0, -1)) do
  local id = run_id(message)
  if id and not gone[id] and not seen[id] then
    added[#added + 1] = message
  end
  gone[id or ''] = nil
end
local was_behind = window.skipped ~= tonumber(ARGV[3])
window.below = math.max(was_behind and window.below or -math.huge, tonumber(ARGV[4]) or -math.huge)
call('DEL', window.key, of(window.queue, 'more'), of(window.queue, 'asked'))
for at = messages_at, #ARGV do
  if not gone[run_id(ARGV[at])] then
    call('RPUSH', window.key, ARGV[at])
  end
end
window.length = call('LLEN', window.key)
for _, message in ipairs(added) do
  insert(window, message)
end
save_window(window)
tell(window.queue, call('LLEN', window.key))
return is_short(window.queue) and 1 or 0
