-- The list of a queue is a window: its first jobs, in the order of dispatch; the store has all. With fewer than `low`,
-- it is filled again.
local prefix, most, low, call = ARGV[1], 1000, 500, redis.call

local function of(queue, what)
  return prefix .. 'queue:' .. queue .. ':' .. what
end

-- Both fields stand before the payload. A message of another program has the lowest priority.
local function run_id(message)
  return string.match(message, '^{"task_run_id":"([^"]*)"')
end

local function priority(message)
  return tonumber(message and string.match(message, '"priority":(-?%d+)') or '') or -math.huge
end

local function tell(queue, n)
  call('PUBLISH', prefix .. 'windlass:ready', n .. ':' .. queue)
end

-- The priority from which downwards the store has more jobs than the window.
local function below(queue)
  return tonumber(call('HGET', of(queue, 'more'), 'below') or '') or -math.huge
end

local function leave_to_store(queue, n)
  local skipped = tonumber(call('HGET', of(queue, 'more'), 'skipped') or '') or 0
  call('HSET', of(queue, 'more'), 'below', math.max(below(queue), n, -2 ^ 31), 'skipped', skipped + 1)
end

-- Inserts a job, unless it belongs behind the window. Returns whether it can be popped.
local function insert(queue, message)
  local key, n = of(queue, 'ready'), priority(message)
  local length, is_last = call('LLEN', key), n <= priority(call('LINDEX', key, -1))
  if n <= below(queue) or (is_last and length >= most) then
    return leave_to_store(queue, n)
  elseif call('LPOS', key, message, 'RANK', -1, 'MAXLEN', 128) then
    -- A fill has added it before this update arrived.
    return false
  elseif is_last or length == 0 then
    return call('RPUSH', key, message) > 0
  end
  -- Turns of lower classes make the search inexact, and do no harm.
  local first, last = 0, length - 1
  while first < last do
    local middle = math.floor((first + last) / 2)
    if priority(call('LINDEX', key, middle)) >= n then
      first = middle + 1
    else
      last = middle
    end
  end
  call('LINSERT', key, 'BEFORE', call('LINDEX', key, first), message)
  if length >= most then
    leave_to_store(queue, priority(call('RPOP', key)))
  end
  return true
end

-- Whether the store has more jobs than a short window, and no server fills it now.
local function is_short(queue)
  return call('LLEN', of(queue, 'ready')) < low and call('EXISTS', of(queue, 'more')) == 1
    and call('SET', of(queue, 'asked'), 1, 'NX', 'PX', 2000)
end
