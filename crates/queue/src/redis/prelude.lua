local prefix = ARGV[1]

-- What a key holds that it should not hold is of no use to anybody: it goes, and the store has what is true.
local function call(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err and string.find(answer.err, 'WRONGTYPE', 1, true) then
    redis.call('DEL', key)
    answer = redis.pcall(command, key, ...)
  end
  if type(answer) == 'table' and answer.err then
    error(answer.err)
  end
  return answer
end

local function of(queue, what)
  return prefix .. 'queue:' .. queue .. ':' .. what
end

local function list(queue, priority)
  if priority == '0' then
    return of(queue, 'ready')
  end
  return of(queue, 'ready:' .. priority)
end

-- The priority from which on downwards the store has jobs that no list has, if it has any.
local function left(queue)
  return tonumber(call('GET', of(queue, 'more')) or '')
end

-- Puts a job at the end of its list, unless those before it are only in the store.
local function push(queue, priority, id, most)
  local more = left(queue)
  if more and tonumber(priority) <= more then
    return false
  end
  local key = list(queue, priority)
  if call('LLEN', key) >= most then
    call('SET', of(queue, 'more'), priority)
    return false
  end
  call('RPUSH', key, id)
  call('ZADD', of(queue, 'priorities'), priority, priority)
  return true
end

local function tell(queue, n)
  if n > 0 then
    redis.call('PUBLISH', prefix .. 'windlass:ready', n .. ':' .. queue)
  end
end
