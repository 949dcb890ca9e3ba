-- Appends jobs of a queue to its lists, in order.
-- ARGV: prefix, limit of a list, queue, whether the lists are cleared first, the priority from which downwards the
-- store has more jobs ('' = it has none), and priority and id of each job.
local most, queue, is_first, more = tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local priorities = of(queue, 'priorities')
if is_first == '1' then
  for _, priority in ipairs(call('ZRANGE', priorities, 0, -1)) do
    redis.call('DEL', list(queue, priority))
  end
  redis.call('DEL', list(queue, '0'), priorities, of(queue, 'more'), of(queue, 'runs'))
end
local n = 0
for at = 6, #ARGV, 2 do
  if push(queue, ARGV[at], ARGV[at + 1], most) then
    n = n + 1
  end
end
if more ~= '' then
  local before = left(queue)
  if not before or before < tonumber(more) then
    call('SET', of(queue, 'more'), more)
  end
end
tell(queue, n)
return n
