-- Puts jobs of a queue into its lists, in the order given.
-- ARGV: prefix, how many a list holds at most, the queue, whether what is there goes first, the priority from which on
-- the store has more ('' = it has not), and priority and id of each job.
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
