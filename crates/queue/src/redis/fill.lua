-- Replaces the window of a queue by what the store had, with the jobs that were added since and without those that were
-- popped since. ARGV: prefix, queue, count of jobs that were left to the store before it was read, priority from which
-- downwards the store has more ('' = it has none), number of ids in the window then, these ids, and messages.
-- Returns whether jobs were left to the store meanwhile.
local queue, messages_at = ARGV[2], 6 + ARGV[5]
local key, more, gone, seen, added = of(queue, 'ready'), of(queue, 'more'), {}, {}, {}
for at = 6, #ARGV do
  local set = at < messages_at and gone or seen
  set[at < messages_at and ARGV[at] or run_id(ARGV[at])] = true
end
for _, message in ipairs(call('LRANGE', key, 0, -1)) do
  local id = run_id(message)
  if id and not gone[id] and not seen[id] then
    added[#added + 1] = message
  end
  gone[id or ''] = nil
end
local skipped = call('HGET', more, 'skipped') or '0'
local boundary = math.max(skipped ~= ARGV[3] and below(queue) or -math.huge, tonumber(ARGV[4]) or -math.huge)
call('DEL', key, more, of(queue, 'asked'))
if boundary > -math.huge then
  call('HSET', more, 'below', boundary, 'skipped', skipped)
end
for at = messages_at, #ARGV do
  if not gone[run_id(ARGV[at])] then
    call('RPUSH', key, ARGV[at])
  end
end
for _, message in ipairs(added) do
  insert(queue, message)
end
tell(queue, call('LLEN', key))
return skipped ~= ARGV[3] and 1 or 0
