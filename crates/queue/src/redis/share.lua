-- Fair share of lower classes of runs, so that none of them starves: the rule of `engine::share` for all servers
-- together. The ids show which jobs are of runs. `queue:{name}:runs` has the number of such jobs in each list, and of
-- the turns of the queue: how many there were `since` a lower class had one, which class that was `last`, and after how
-- many the `unread` lower classes are read from the store. If it is lost or wrong, some turns go to another class.
--
-- Arguments: the lists in the order in which they are popped; the queues of which the store has more jobs; the hash of
-- each queue; one turn in how many is reserved; turns until a queue is `low`; and a function that adds a popped id.
local levels, more, runs, share, ask_every, low, give = ...

-- How far into a list a job for a reserved turn is searched, and about how many entries are examined in all lists
-- together: the script blocks Redis.
local far, looks = 4096, 16384
-- For each queue, the changes of its hash, and whether it has fewer lists now.
local news, is_less = {}, {}

-- Parses a number; invalid text counts as absent.
local function read(said)
  local of_runs = {}
  for at = 1, #said, 2 do
    local n = tonumber(said[at + 1])
    if n and n == math.floor(n) and math.abs(n) < 2147483648 then
      of_runs[said[at]] = n
    end
  end
  return of_runs
end

for queue, said in pairs(runs) do
  runs[queue] = read(said)
end

-- Writes the changed fields, none for lists that were not examined, and nothing if no list is left.
local function say_of_runs(queue)
  local key, set, gone = of(queue, 'runs'), {}, {}
  if is_less[queue] and call('ZCARD', of(queue, 'priorities')) == 0 then
    redis.call('DEL', key)
    return
  end
  for field in pairs(news[queue] or {}) do
    local n = runs[queue][field]
    if n then
      set[#set + 1] = field
      set[#set + 1] = n
    else
      gone[#gone + 1] = field
    end
  end
  if #gone > 0 then
    call('HDEL', key, unpack(gone))
  end
  if #set > 0 then
    call('HSET', key, unpack(set))
  end
end

local function note(queue, field, n)
  runs[queue][field] = n
  news[queue] = news[queue] or {}
  news[queue][field] = true
end

local function n_runs(level)
  return runs[level.queue][level.priority] or 0
end

local function set_n_runs(level, n)
  note(level.queue, level.priority, n > 0 and n or nil)
end

-- Whether the store has jobs before those of this list.
local function is_behind(level)
  return more[level.queue] and level.n < more[level.queue]
end

-- The first job of a run in a list, or the first plain job; `nil` = there is none, or it is too far. The number of jobs
-- before it is `level[of_run]`, and these are not examined again: a large claim has many turns, and no job is added
-- meanwhile.
local function first(level, of_run)
  local from, n = level[of_run] or 0, 1
  level[of_run] = from
  while from < far and (looks > 0 or n == 1) do
    local ids = call('LRANGE', level.key, from, from + n - 1)
    looks = looks - #ids
    for at = 1, #ids do
      if is_run(ids[at]) == of_run then
        level[of_run] = from + at - 1
        return ids[at]
      end
    end
    from = from + #ids
    level[of_run] = from
    if #ids < n then
      -- All entries were examined, so the count is known from now on.
      set_n_runs(level, of_run and 0 or from)
      return nil
    end
    n = math.min(2 * n, near, far - from)
  end
  return nil
end

-- The index in `levels` before which there is no run below a priority, and the one before which no plain job is near.
local no_run_before, no_plain_before = {}, 1

-- The index in `levels` of the first job of a run below a priority, and the job. It is not searched behind very many
-- plain jobs, which come before it.
local function run_below(priority)
  for at = no_run_before[priority] or 1, #levels do
    local level = levels[at]
    if level.n < priority and n_runs(level) > 0 then
      local id = first(level, true)
      if id or (n_runs(level) > 0 and not is_behind(level)) then
        no_run_before[priority] = at
        return at, id
      end
    end
  end
  no_run_before[priority] = #levels + 1
end

-- The first plain job before the first job of a run in that one of `levels`, and its list.
local function plain_before(run_at)
  for at = no_plain_before, run_at - 1 do
    local level = levels[at]
    if not is_behind(level) and call('LLEN', level.key) > n_runs(level) then
      local id = first(level, false)
      if id then
        return level, id
      end
    end
    no_plain_before = at + 1
  end
  local level = levels[run_at]
  if level[true] > 0 and not is_behind(level) then
    return level, call('LINDEX', level.key, 0)
  end
end

-- The job for a reserved turn, if there is one: of a lower class, or a plain job before that one.
local function heir(top)
  note(top.queue, 'since', 0)
  local last = runs[top.queue].last or top.n
  local at, id = run_below(math.min(last, top.n))
  if not at and last < top.n then
    at, id = run_below(top.n)
  end
  if not at then
    top.is_alone = true
    return nil
  end
  local level, plain = plain_before(at)
  if plain then
    return level, plain
  end
  if id then
    note(top.queue, 'last', levels[at].n)
  end
  return levels[at], id
end

-- Removes one job from a list, the first of its kind there.
local function take_first(level, id)
  call('LREM', level.key, 1, id)
  give(level, { id })
  local is_of_run = is_run(id)
  local before, others = level[is_of_run] or 0, level[not is_of_run] or 0
  if before < others then
    level[not is_of_run] = others - 1
  end
  if is_of_run then
    set_n_runs(level, n_runs(level) - 1)
  end
end

-- Records so many turns of jobs of runs in their order.
local function had_turns(level, n)
  local queue = level.queue
  set_n_runs(level, n_runs(level) - n)
  note(queue, 'since', (runs[queue].since or 0) + n)
  if not more[queue] then
    return
  end
  note(queue, 'unread', (runs[queue].unread or 0) - n)
  if runs[queue].unread <= 0 then
    note(queue, 'unread', ask_every)
    low[#low + 1] = queue
  end
end

-- Removes so many jobs from the head of a list; `false` = the list is empty then.
local function take_head(level, n)
  local ids, n_of_runs = call('LPOP', level.key, n) or {}, 0
  give(level, ids)
  for at = 1, #ids do
    if is_run(ids[at]) then
      n_of_runs = n_of_runs + 1
    end
  end
  level[true] = math.max((level[true] or 0) - #ids, 0)
  level[false] = math.max((level[false] or 0) - #ids, 0)
  if n_of_runs > 0 then
    had_turns(level, n_of_runs)
  end
  if #ids < n then
    set_n_runs(level, 0)
    is_less[level.queue] = true
    return false
  end
  return true
end

-- Removes the next jobs of a list, at most so many and up to the next reserved turn; `false` = the list is empty then.
local function take_next(level, wanted)
  local n = wanted
  if n_runs(level) > 0 and not level.is_alone then
    n = math.min(n, share - 1 - (runs[level.queue].since or 0))
  end
  if n > 0 then
    return take_head(level, n)
  end
  local next_run = first(level, true)
  if next_run and level[true] == 0 then
    local heir_level, id = heir(level)
    if id then
      take_first(heir_level, id)
      return true
    end
  end
  return take_head(level, level.is_alone and wanted or math.max(1, math.min(wanted, level[true])))
end

return take_next, say_of_runs
