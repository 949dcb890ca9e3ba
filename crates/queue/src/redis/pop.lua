-- Removes the first jobs; of several queues, from the one with the highest priority among its next jobs: a turn of a lower
-- class does not hold its queue back. ARGV: prefix, wanted jobs, jobs between two such turns, queues. Returns whether Redis still has
-- its contents, queue and message of each job, and the queues with a short window.
local wanted, found, short, tops = tonumber(ARGV[2]), {}, {}, {}
local function take(queue, n)
  for _, message in ipairs(call('LPOP', of(queue, 'ready'), n) or {}) do
    found[#found + 1], found[#found + 2] = queue, message
    wanted = wanted - 1
  end
  tops[queue] = nil
  for _, message in ipairs(call('LRANGE', of(queue, 'ready'), 0, ARGV[3] - 1)) do
    tops[queue] = math.max(tops[queue] or -math.huge, priority(message))
  end
end
for at = 4, #ARGV do
  take(ARGV[at], #ARGV == 4 and wanted or 0)
end
while wanted > 0 and next(tops) do
  local best
  for at = 4, #ARGV do
    local top = tops[ARGV[at]]
    best = top and (not best or top > tops[best]) and ARGV[at] or best
  end
  take(best, 1)
end
for at = 4, #ARGV do
  short[#short + 1] = is_short(ARGV[at]) and ARGV[at] or nil
end
return { call('EXISTS', prefix .. 'windlass:epoch'), found, short }
