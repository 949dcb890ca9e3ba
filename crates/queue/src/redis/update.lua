-- Applies updates of jobs, in order.
-- ARGV: prefix, limit of a list, and for each update: kind, queue, priority, id, lease, and two more.
local most = tonumber(ARGV[2])
local told = {}

local function told_of(queue)
  told[queue] = (told[queue] or 0) + 1
end

local function waits_as(id, priority)
  if priority == '0' then
    return id
  end
  return id .. ':' .. priority
end

local function release(lease)
  if lease ~= '' then
    redis.call('DEL', prefix .. 'lease:' .. lease)
  end
end

local function drop(queue, priority, id)
  local key = list(queue, priority)
  if call('LPOS', key, id, 'MAXLEN', near) then
    call('LREM', key, 1, id)
    count(queue, priority, id, -1)
  end
end

local moves = {}

-- `waited`: whether the job was delayed, so that a pop may have moved it already.
function moves.ready(queue, priority, id, lease, waited, was_dead)
  release(lease)
  if was_dead == '1' then
    call('LREM', of(queue, 'dlq'), 1, id)
  end
  if waited == '1' and call('ZREM', of(queue, 'delayed'), waits_as(id, priority)) == 0
    and call('LPOS', list(queue, priority), id, 'RANK', -1, 'MAXLEN', near) then
    return
  end
  if push(queue, priority, id, most) then
    told_of(queue)
  end
end

-- A failed claim returns the job: it is the first again.
function moves.back(queue, priority, id)
  put(queue, priority, id, 'LPUSH')
  told_of(queue)
end

function moves.delayed(queue, priority, id, lease, due, was_dead)
  release(lease)
  if was_dead == '1' then
    call('LREM', of(queue, 'dlq'), 1, id)
  end
  drop(queue, priority, id)
  call('ZADD', of(queue, 'delayed'), due, waits_as(id, priority))
end

function moves.held(queue, priority, id, lease, worker, ms)
  drop(queue, priority, id)
  call('ZREM', of(queue, 'delayed'), waits_as(id, priority))
  redis.call('SET', prefix .. 'lease:' .. lease, worker, 'PX', ms)
end

function moves.ended(queue, priority, id, lease)
  release(lease)
  drop(queue, priority, id)
  call('ZREM', of(queue, 'delayed'), waits_as(id, priority))
end

function moves.dead(queue, priority, id, lease, most_dead)
  release(lease)
  local key = of(queue, 'dlq')
  call('LREM', key, 1, id)
  call('RPUSH', key, id)
  call('LTRIM', key, '-' .. most_dead, -1)
end

function moves.discarded(queue, _, id)
  call('LREM', of(queue, 'dlq'), 1, id)
end

function moves.beat(_, _, worker, _, ms, at)
  redis.call('SET', prefix .. 'worker:' .. worker .. ':heartbeat', at, 'PX', ms)
end

for at = 3, #ARGV, 7 do
  moves[ARGV[at]](ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6])
end
for queue, n in pairs(told) do
  tell(queue, n)
end
return 0
