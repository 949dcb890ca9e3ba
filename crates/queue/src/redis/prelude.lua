local prefix = ARGV[1]

-- How far from the ends of a list a job is searched for; an entry further in is passed over when it is popped.
local near = 256

-- A key with a value of the wrong type is deleted; the store has the truth.
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

-- The priority from which downwards the store has more jobs than the lists, if it has any.
local function left(queue)
  return tonumber(call('GET', of(queue, 'more')) or '')
end

-- The id of a job of a run has no hyphens, so a list shows which of its jobs leave turns to lower classes.
local function is_run(id)
  return #id == 32
end

local function count(queue, priority, id, by)
  if is_run(id) then
    call('HINCRBY', of(queue, 'runs'), priority, by)
  end
end

-- Adds a job to its list, at this end.
local function put(queue, priority, id, at)
  call(at, list(queue, priority), id)
  call('ZADD', of(queue, 'priorities'), priority, priority)
  count(queue, priority, id, 1)
end

-- Appends a job to its list, unless jobs before it are only in the store. Returns whether it can be popped in order. A
-- job of a run behind those is kept for the fair share of its class: a few are enough.
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
