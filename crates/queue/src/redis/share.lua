-- Turns that jobs of runs leave to those of lower classes, so that none of them starves: `engine::share`, for all servers
-- together. Who is of a run stands in the ids. `queue:{name}:runs` says how many of each list are, and of the turns of
-- the queue: how many there were `since` a lower class had one, which class that was `last`, and after how many the
-- store is asked for what is `unread` of lower classes. It may be lost, or wrong: then some turns are somebody else's.

-- How far into a list somebody is looked for who gets a turn.
local far = 4096

-- Lists, in the order in which they are popped; what the store has more of; and of each queue, what is said of runs.
local levels, more, runs = {}, {}, {}

-- What is said of the runs of a queue; nonsense is not.
local function said_of_runs(queue)
  local said, of_runs = call('HGETALL', of(queue, 'runs')), {}
  for at = 1, #said, 2 do
    local n = tonumber(said[at + 1])
    if n and n == math.floor(n) and math.abs(n) < 2147483648 then
      of_runs[said[at]] = n
    end
  end
  return of_runs
end

-- Says it again, unless nothing is left of the queue.
local function say_of_runs(queue)
  local key, of_runs = of(queue, 'runs'), runs[queue]
  local is_empty = call('ZCARD', of(queue, 'priorities')) == 0
  if of_runs.is_changed or is_empty then
    redis.call('DEL', key)
  end
  if is_empty or not of_runs.is_changed then
    return
  end
  for _, field in ipairs({ 'since', 'last', 'unread' }) do
    if of_runs[field] then
      call('HSET', key, field, of_runs[field])
    end
  end
  for _, level in ipairs(levels) do
    if level.queue == queue and (of_runs[level.priority] or 0) > 0 then
      call('HSET', key, level.priority, of_runs[level.priority])
    end
  end
end

local function n_runs(level)
  return runs[level.queue][level.priority] or 0
end

local function set_n_runs(level, n)
  runs[level.queue][level.priority] = n
  runs[level.queue].is_changed = true
end

-- Whether the store has jobs that come before those of this list.
local function is_behind(level)
  return more[level.queue] and level.n < more[level.queue]
end

-- The first job of a list that is of a run, or that is none; `nil` = there is none, or it is too far.
local function first(level, of_run)
  for from = 0, far - 1, near do
    local ids = call('LRANGE', level.key, from, from + near - 1)
    for _, id in ipairs(ids) do
      if is_run(id) == of_run then
        return id
      end
    end
    if #ids < near then
      -- All were looked at: from now on it is known.
      set_n_runs(level, of_run and 0 or from + #ids)
      return nil
    end
  end
  return nil
end

-- The first job of a run below a priority, and its list. Behind very many plain jobs, which come before it, it is not
-- looked for.
local function run_below(priority)
  for _, level in ipairs(levels) do
    if level.n < priority and n_runs(level) > 0 then
      local id = first(level, true)
      if id or (n_runs(level) > 0 and not is_behind(level)) then
        return level, id
      end
    end
  end
end

-- The first plain job that comes before the first of a run in this list, and where it is.
local function plain_before(last)
  for _, level in ipairs(levels) do
    if level == last then
      local head = call('LINDEX', level.key, 0)
      if head and not is_run(head) and not is_behind(level) then
        return level, head
      end
      return nil
    end
    if not is_behind(level) and not level.is_bare and call('LLEN', level.key) > n_runs(level) then
      local id = first(level, false)
      if id then
        return level, id
      end
      level.is_bare = true
    end
  end
end

-- Who gets a turn that is kept, if somebody wants it: one of a lower class, or a plain job that is before that one.
local function heir(top)
  local turn = runs[top.queue]
  turn.since, turn.is_changed = 0, true
  local below = math.min(turn.last or top.n, top.n)
  local level, id = run_below(below)
  if not level and below < top.n then
    level, id = run_below(top.n)
  end
  if not level then
    return nil
  end
  local plain_level, plain = plain_before(level)
  if plain then
    return plain_level, plain
  end
  if id then
    turn.last = level.n
  end
  return level, id
end
