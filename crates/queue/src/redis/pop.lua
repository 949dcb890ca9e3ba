-- Takes jobs out of lists: those that are due by now, higher priorities first, then the queues in the order given.
-- ARGV: prefix, how many a list holds at most, how many are wanted, the time, and the queues.
-- Answers: whether Redis still has what it was given; queue, priority and id of each job; and the queues of which the
-- store has more that comes before what is left here.
local most, wanted, now = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
-- Jobs that are due are moved so many at a time, and priorities looked at: whoever comes next goes on.
local few = 128
local levels, more, moved = {}, {}, {}
for at = 5, #ARGV do
  local queue = ARGV[at]
  moved[queue] = 0
  for _, waits in ipairs(call('ZRANGEBYSCORE', of(queue, 'delayed'), '-inf', now, 'LIMIT', 0, few)) do
    call('ZREM', of(queue, 'delayed'), waits)
    local id, priority = string.match(waits, '^(.-):(-?%d+)$')
    if push(queue, priority or '0', id or waits, most) then
      moved[queue] = moved[queue] + 1
    end
  end
  more[queue] = left(queue)
  for _, priority in ipairs(call('ZREVRANGE', of(queue, 'priorities'), 0, few - 1)) do
    if tonumber(priority) then
      levels[#levels + 1] = { n = tonumber(priority), at = at, queue = queue, priority = priority }
    else
      call('ZREM', of(queue, 'priorities'), priority)
    end
  end
end
table.sort(levels, function(one, other)
  if one.n ~= other.n then
    return one.n > other.n
  end
  return one.at < other.at
end)

local found, thin = {}, {}
for _, level in ipairs(levels) do
  if wanted <= 0 then
    break
  end
  local queue = level.queue
  if more[queue] and level.n < more[queue] then
    thin[queue] = true
  else
    local key = list(queue, level.priority)
    for _, id in ipairs(call('LPOP', key, wanted) or {}) do
      found[#found + 1] = queue
      found[#found + 1] = level.priority
      found[#found + 1] = id
      wanted = wanted - 1
      moved[queue] = moved[queue] - 1
    end
    if call('LLEN', key) == 0 then
      call('ZREM', of(queue, 'priorities'), level.priority)
    end
  end
end

local asked = {}
for at = 5, #ARGV do
  local queue = ARGV[at]
  -- Nobody else was told of what was moved just now.
  tell(queue, moved[queue])
  moved[queue] = 0
  if more[queue] and (wanted > 0 or thin[queue]) then
    asked[#asked + 1] = queue
    more[queue] = nil
  end
end
return { redis.call('EXISTS', prefix .. 'windlass:epoch'), found, asked }
