local prefix = ARGV[1]

-- How far from an end of a list a job is looked for: what is further in is passed over when it is popped.
local near = 256

-- What a key holds that it should not hold is of no use to anybody: it goes, and the store has what is true.
local function call(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err then
    for _, what in ipairs({ 'WRONGTYPE', 'not an integer', 'overflow' }) do
      if string.find(answer.err, what, 1, true) then
        redis.call('DEL', key)
        return redis.call(command, key, ...)
      end
    end
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

-- The id of a job of a run is written without hyphens: so a list says which of its jobs give turns to lower classes.
local function is_run(id)
  return #id == 32
end

local function count(queue, priority, id, by)
  if is_run(id) then
    call('HINCRBY', of(queue, 'runs'), priority, by)
  end
end

-- Puts a job into its list, at this end.
local function put(queue, priority, id, at)
  call(at, list(queue, priority), id)
  call('ZADD', of(queue, 'priorities'), priority, priority)
  count(queue, priority, id, 1)
end

-- Puts a job at the end of its list, unless those before it are only in the store; whether it can be popped in its
-- order. Of a run and behind those, it is there for the turns that are kept for lower classes: a few are enough.
local function push(queue, priority, id, most)
  local more, n = left(queue), call('LLEN', list(queue, priority))
  if more and tonumber(priority) <= more then
    if is_run(id) and tonumber(priority) < more and n < near then
      put(queue, priority, id, 'RPUSH')
    end
    return false
  end
  if n >= most then
    call('SET', of(queue, 'more'), priority)
    return false
  end
  put(queue, priority, id, 'RPUSH')
  return true
end

local function tell(queue, n)
  if n > 0 then
    redis.call('PUBLISH', prefix .. 'windlass:ready', n .. ':' .. queue)
  end
end
