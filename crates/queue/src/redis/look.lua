-- Counts the jobs that can be popped now. ARGV: prefix, time, and the queues.
-- Returns whether Redis still has its contents, and the count of each queue; -1 = only the store has jobs.
local answer = { redis.call('EXISTS', prefix .. 'windlass:epoch') }
for at = 3, #ARGV do
  local queue, more = ARGV[at], left(ARGV[at])
  local n = call('ZCOUNT', of(queue, 'delayed'), '-inf', ARGV[2])
  for _, priority in ipairs(call('ZREVRANGE', of(queue, 'priorities'), 0, 127)) do
    if not more or (tonumber(priority) or more) >= more then
      n = n + call('LLEN', list(queue, priority))
    end
  end
  if n == 0 and more then
    n = -1
  end
  answer[#answer + 1] = n
end
return answer
