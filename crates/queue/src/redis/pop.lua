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
local moved = {}
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
  more[queue], runs[queue] = left(queue), said_of_runs(queue)
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
local function take(level, id)
  local queue = level.queue
  found[#found + 1] = queue
  found[#found + 1] = level.priority
  found[#found + 1] = id
  wanted = wanted - 1
  moved[queue] = moved[queue] - 1
  level.is_shorter = true
  if is_run(id) then
    set_n_runs(level, n_runs(level) - 1)
  end
end

-- Takes those that are next in a list, up to the next turn that is kept; `false` = there is none.
local function take_next(level)
  local turn = runs[level.queue]
  local n = wanted
  if n_runs(level) > 0 then
    n = math.min(n, share - 1 - (turn.since or 0))
  end
  if n <= 0 then
    local head = call('LINDEX', level.key, 0)
    local heir_level, id
    if head and is_run(head) then
      heir_level, id = heir(level)
    end
    if id then
      call('LREM', heir_level.key, 1, id)
      take(heir_level, id)
      return true
    end
    n = 1
  end
  local ids = call('LPOP', level.key, n) or {}
  for _, id in ipairs(ids) do
    take(level, id)
    if is_run(id) then
      turn.since = (turn.since or 0) + 1
      if more[level.queue] then
        turn.unread = (turn.unread or 0) - 1
      end
      if more[level.queue] and turn.unread <= 0 then
        turn.unread = ask_every
        low[#low + 1] = level.queue
      end
    end
  end
  return #ids > 0
end

for _, level in ipairs(levels) do
  if wanted <= 0 then
    break
  end
  if is_behind(level) then
    thin[level.queue] = true
  else
    while wanted > 0 and take_next(level) do
    end
  end
end
for _, level in ipairs(levels) do
  if level.is_shorter and call('LLEN', level.key) == 0 then
    call('ZREM', of(level.queue, 'priorities'), level.priority)
    runs[level.queue][level.priority] = nil
  end
end

local asked = {}
for at = queues_at, #ARGV do
  local queue = ARGV[at]
  if next(runs[queue]) then
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
return { redis.call('EXISTS', prefix .. 'windlass:epoch'), found, asked, low }
