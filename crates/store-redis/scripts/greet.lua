-- A node says that it is there, and hears how many are.
--
-- The line before this file sets `now`, in microseconds.
--
-- KEYS[1]   sorted set: nodes, by when they are no longer believed to be there
-- ARGV      node, for how long it is without another word, in microseconds
-- returns   {now, how many there are, when the node said so before, or 0}

local life = tonumber(ARGV[2])

-- Numbers above 2^46 lose digits in `tostring`.
local function text(number)
  return string.format('%.0f', number)
end

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now))
local expires = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], text(now + life), ARGV[1])
if redis.call('PTTL', KEYS[1]) < life / 1000 then
  redis.call('PEXPIRE', KEYS[1], text(math.ceil(life / 1000)))
end
return { now, redis.call('ZCARD', KEYS[1]), expires and tonumber(expires) - life or 0 }
