-- Removes due jobs from the lists: higher priorities first, then the queues in the given order. Jobs of runs leave some
-- turns to lower classes.
-- ARGV: prefix, limit of a list, wanted jobs, time, one turn in how many is reserved for lower classes, turns until the
-- next read of these from the store, and the queues.
-- Returns whether Redis still has its contents; queue, priority and id of each job; the queues of which the store has
-- jobs before the remaining ones; and the queues of which it may have more jobs of lower classes.
local most, wanted, now = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local share, ask_every, queues_at = tonumber(ARGV[5]), tonumber(ARGV[6]), 7
-- Due jobs that one pop moves, and priorities that it examines; the next pop continues.
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
  -- One call: the number of calls dominates the cost of a pop.
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
  -- A pop that wants more jobs than there are finds the end of a list; it is not asked for before.
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
  -- The jobs that were moved just now have not been announced.
  tell(queue, moved[queue])
  moved[queue] = 0
  if more[queue] and (wanted > 0 or thin[queue]) then
    asked[#asked + 1] = queue
    more[queue] = nil
  end
end
return { is_filled and 1 or redis.call('EXISTS', epoch), found, asked, low }
