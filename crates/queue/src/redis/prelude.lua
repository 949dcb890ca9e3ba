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

-- The length of a window, the priority from which downwards the store has more jobs, and how many were left to it.
local function read_window(queue)
  local more, key = call('HMGET', of(queue, 'more'), 'below', 'skipped'), of(queue, 'ready')
  local below, skipped = tonumber(more[1] or '') or -math.huge, tonumber(more[2] or '') or 0
  return { queue = queue, key = key, length = call('LLEN', key), below = below, skipped = skipped }
end

local function save_window(window)
  if window.below > -math.huge then
    call('HSET', of(window.queue, 'more'), 'below', window.below, 'skipped', window.skipped)
  end
end

local function leave_to_store(window, n)
  window.below, window.skipped = math.max(window.below, n, -2 ^ 31), window.skipped + 1
end

-- Inserts a job, unless it belongs behind the window. Returns whether it can be popped.
local function insert(window, message)
  local key, n = window.key, priority(message)
  local is_last = n <= window.below or n <= priority(call('LINDEX', key, -1))
  if n <= window.below or (is_last and window.length >= most) then
    return leave_to_store(window, n)
  elseif call('LPOS', key, message, 'RANK', -1, 'MAXLEN', 128) then
    -- A fill has added it before this update arrived.
    return false
  elseif is_last or window.length == 0 then
    call('RPUSH', key, message)
  else
    -- Turns of lower classes make the search inexact, and do no harm.
    local first, last = 0, window.length - 1
    while first < last do
      local middle = math.floor((first + last) / 2)
      if priority(call('LINDEX', key, middle)) >= n then
        first = middle + 1
      else
        last = middle
      end
    end
    call('LINSERT', key, 'BEFORE', call('LINDEX', key, first), message)
  end
  window.length = window.length + 1
  if window.length > most then
    leave_to_store(window, priority(call('RPOP', key)))
  end
  return true
end

-- Whether the store has more jobs than a short window, and no server fills it now.
local function is_short(queue)
  return call('LLEN', of(queue, 'ready')) < low and call('EXISTS', of(queue, 'more')) == 1
    and call('SET', of(queue, 'asked'), 1, 'NX', 'PX', 2000)
end
