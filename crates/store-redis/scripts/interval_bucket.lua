-- Token bucket refilled in portions. Value: `period:missing`, marked as in `count.lua`.
--
-- a: 5 the period in microseconds   6 the portion   7 the most that can be missing
local function open(c, a)
  c.due, c.window = 0, a[5]
  local v = call('GET', c.key)
  if not v then return end
  -- None of ours is longer, and one that is might keep the pattern busy for ever.
  local sign, index, missing, period =
    match(#v > 99 and '' or v, '^(%-?)(%d+):(%d+)@?(%d*)$')
  if not index then error('undecodable value of ' .. c.key, 0) end
  c.found, c.marked, c.index, c.missing = v, sign == '-', index + 0, missing + 0
  read_period(c, period)
end

-- Which period it is, and what is missing in it. One ahead of now stands.
local function settle(c, a)
  local period = floor(now / a[5])
  if not c.index then return period, 0 end
  local missing = c.missing
  -- More than any charge can have taken: it counts as one that was just empty.
  if missing > a[7] then missing = a[2] end
  if missing == 0 then return period, 0 end
  if c.index >= period then return c.index, missing end
  -- The debt of a postpaid bucket is forgotten at the edge.
  if a[4] == -2 then missing = math.min(missing, a[2]) end
  return period, math.max(missing - (period - c.index) * a[6], 0)
end

local function weigh(c, a)
  local index, missing = settle(c, a)
  local fits, is_charged = fit(c, a, missing)
  if is_charged then c.next, c.next_missing = index, missing + c.due end
  return fits
end

-- When a bucket of this period that misses so much is full again.
local function ends(index, missing, a)
  if missing == 0 then return 0 end
  if a[4] == -2 then missing = math.min(missing, a[2]) end
  local portions = floor(missing / a[6])
  if portions * a[6] < missing then portions = portions + 1 end
  return (index + portions) * a[5]
end

local function refill(c, a, index, missing)
  put(c, a, format('%d:%d', index, missing), ends(index, missing, a))
end

local function write(c, a, is_charged)
  if (is_charged or c.is_postpaid) and c.next then
    refill(c, a, c.next, c.next_missing)
  else
    mark(c, a, is_charged, c.index and ends(c.index, c.missing, a))
  end
end
