-- Puts jobs of runs of a lower class into their list, in the order given and in place of what is there, if the store has
-- more than the lists: so the class gets the turns that are kept for it.
-- ARGV: prefix, the queue, the priority, turns until the store is to be asked again, and the ids.
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
