-- Writes the totals of one node for some counters, and reads the sums of all nodes.
--
-- The line before this file sets `now`, in microseconds.
--
-- KEYS      for each counter two hashes: of the current epoch, and of the one before. Fields:
--             <slot>          what all nodes admitted in this slot of the epoch, less what they refunded of it
--             <slot>:<node>   what one node admitted and refunded in it, as `<admitted> <refunded>`
--             base            what was in use when the epoch began, apart from what slots say
--             created         when the hash was made, in microseconds
-- ARGV      node, then for each counter:
--             how long what is written is of use, in milliseconds
--             slots in an epoch
--             the first slot to read, and the last: counted from the start of the current epoch, so
--               that slots of the epoch before are below 0
--             what was in use when the epoch began
--             how many totals follow, and for each: slot, admitted, refunded
-- returns   for each counter `created` and `base` of the current epoch, the same of the epoch before (0
--           where there is none), then each slot that was ever written and its sum
--
-- Both numbers of a node only grow, so updates of one node that arrive twice, late or out of order change nothing.
-- Several nodes may have refunded the same, so no refund takes an epoch, with its base, below zero.

local node = ARGV[1]
local position = 1

local function argument()
  position = position + 1
  return ARGV[position]
end

-- Numbers above 2^46 lose digits in `tostring`.
local function text(number)
  return string.format('%.0f', number)
end

-- What an epoch has in use, with its base.
local function in_use(key, slots)
  local fields, used = { 'base' }, 0
  for slot = 0, slots - 1 do
    fields[#fields + 1] = slot
  end
  for _, number in ipairs(redis.call('HMGET', key, unpack(fields))) do
    used = used + tonumber(number or 0)
  end
  return used
end

local function write(key, slots, slot, admitted, refunded, ttl)
  local own = slot .. ':' .. node
  local stored = redis.call('HGET', key, own)
  local old_admitted, old_refunded = 0, 0
  if stored then
    old_admitted, old_refunded = stored:match('^(%d+) (%d+)$')
    old_admitted, old_refunded = tonumber(old_admitted or 0), tonumber(old_refunded or 0)
  end
  admitted, refunded = math.max(admitted, old_admitted), math.max(refunded, old_refunded)
  local growth = (admitted - old_admitted) - (refunded - old_refunded)
  if admitted == old_admitted and refunded == old_refunded then
    return
  end
  if not stored then
    redis.call('HSETNX', key, 'created', text(now))
  end
  redis.call('HSET', key, own, text(admitted) .. ' ' .. text(refunded))
  redis.call('HINCRBY', key, slot, text(growth))
  local used = growth < 0 and in_use(key, slots) or 0
  if used < 0 then
    redis.call('HINCRBY', key, slot, text(-used))
  end
  redis.call('PEXPIRE', key, ttl)
end

-- Adds what a hash says to a reply: its `created` and `base`, and the sums of some slots.
local function read(key, first, last, offset, head, sums)
  local fields = { 'created', 'base' }
  for slot = first, last do
    fields[#fields + 1] = slot
  end
  local values = redis.call('HMGET', key, unpack(fields))
  head[#head + 1] = tonumber(values[1] or 0)
  head[#head + 1] = tonumber(values[2] or 0)
  for i = 3, #fields do
    if values[i] then
      sums[#sums + 1] = fields[i] - offset
      sums[#sums + 1] = tonumber(values[i])
    end
  end
end

local replies = {}
for i = 1, #KEYS / 2 do
  local current, before = KEYS[2 * i - 1], KEYS[2 * i]
  local ttl, slots = argument(), tonumber(argument())
  local first, last = tonumber(argument()), tonumber(argument())
  local base, totals = tonumber(argument()), tonumber(argument())
  if totals > 0 and base > tonumber(redis.call('HGET', current, 'base') or 0) then
    redis.call('HSET', current, 'base', text(base))
    redis.call('PEXPIRE', current, ttl)
  end
  for _ = 1, totals do
    local slot, admitted, refunded = tonumber(argument()), tonumber(argument()), tonumber(argument())
    if slot < 0 then
      write(before, slots, slot + slots, admitted, refunded, ttl)
    else
      write(current, slots, slot, admitted, refunded, ttl)
    end
  end
  local reply, of_before, sums = {}, {}, {}
  read(before, first + slots, slots - 1, slots, of_before, sums)
  read(current, math.max(first, 0), last, 0, reply, sums)
  for _, list in ipairs({ of_before, sums }) do
    for _, number in ipairs(list) do
      reply[#reply + 1] = number
    end
  end
  replies[i] = reply
end
return replies
