-- Takes jobs out of lists: those that are due by now, higher priorities first, then the queues in the order given. Of
-- jobs of runs, some leave their turn to others.
-- ARGV: prefix, how many a list holds at most, how many are wanted, the time, one turn in how many is kept for lower
-- classes, turns until the store is asked for more of these, and the queues.
-- Answers: whether Redis still has what it was given; queue, priority and id of each job; the queues of which the
-- store has more that comes before what is left here; and those of which it may have more of lower classes.
local most, wanted, now = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local share, ask_every, queues_at = tonumber(ARGV[5]), tonumber(ARGV[6]), 7
-- Jobs that are due are moved so many at a time, and priorities looked at: whoever comes next goes on.
local few = 128
local levels, more, runs, moved, has_runs = {}, {}, {}, {}, false
local epoch, is_filled = prefix .. 'windlass:epoch', false
for at = queues_at, #ARGV do
  local queue = ARGV[at]
  moved[queue] = 0
  for _, waits in ipairs(call('ZRANGEBYSCORE', of(queue, 'delayed'), '-inf', now, 'LIMIT', 0, few)) do
    call('ZREM', of(queue, 'delayed'), waits)
    local id, priority = string.match(waits, '^(.-):(-?%d+)$')
    if push(queue, priority or '0', id or waits, most) then
      moved[queue] = moved[queue] + 1
    end
  end
  -- One call: calls are the most of what a pop costs.
  local known = redis.call('MGET', of(queue, 'more'), epoch)
  more[queue], is_filled = tonumber(known[1] or ''), known[2]
  runs[queue] = call('HGETALL', of(queue, 'runs'))
  has_runs = has_runs or #runs[queue] > 0
  for _, priority in ipairs(call('ZREVRANGE', of(queue, 'priorities'), 0, few - 1)) do
    if tonumber(priority) then
      local key = list(queue, priority)
      levels[#levels + 1] = { n = tonumber(priority), at = at, queue = queue, priority = priority, key = key }
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

local found, thin, low = {}, {}, {}
local function give(level, ids)
  local queue, priority, n = level.queue, level.priority, #found
  for at = 1, #ids do
    found[n + 1], found[n + 2], found[n + 3] = queue, priority, ids[at]
    n = n + 3
  end
  wanted = wanted - #ids
  moved[queue] = moved[queue] - #ids
end

local take_next, say_of_runs
if has_runs then
  take_next, say_of_runs = turns(levels, more, runs, share, ask_every, low, give)
end
for _, level in ipairs(levels) do
  if wanted <= 0 then
    break
  end
  if more[level.queue] and level.n < more[level.queue] then
    thin[level.queue] = true
  elseif has_runs then
    while wanted > 0 and take_next(level, wanted) do
    end
  else
    give(level, call('LPOP', level.key, wanted) or {})
  end
  -- Whoever wants more than there is finds that it is the end of a list: nobody asks for it before.
  if wanted > 0 and not thin[level.queue] then
    call('ZREM', of(level.queue, 'priorities'), level.priority)
  end
end

local asked = {}
for at = queues_at, #ARGV do
  local queue = ARGV[at]
  if has_runs then
    say_of_runs(queue)
  end
  -- Nobody else was told of what was moved just now.
  tell(queue, moved[queue])
  moved[queue] = 0
  if more[queue] and (wanted > 0 or thin[queue]) then
    asked[#asked + 1] = queue
    more[queue] = nil
  end
end
return { is_filled and 1 or redis.call('EXISTS', epoch), found, asked, low }
