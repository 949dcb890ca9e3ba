-- Replaces the list of a lower class of runs by these jobs, in order, if the store has more jobs than the lists: so the
-- class gets its fair share.
-- ARGV: prefix, queue, priority, turns until the next read of the store, and the ids.
local queue, priority, more = ARGV[2], ARGV[3], left(ARGV[2])
if not more or tonumber(priority) >= more then
  return 0
end
redis.call('DEL', list(queue, priority))
call('ZREM', of(queue, 'priorities'), priority)
call('HDEL', of(queue, 'runs'), priority)
for at = 5, #ARGV do
  put(queue, priority, ARGV[at], 'RPUSH')
end
call('HSET', of(queue, 'runs'), 'unread', ARGV[4])
return #ARGV - 4
