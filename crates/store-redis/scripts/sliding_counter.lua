-- Sliding counter of two buckets. Value: `window:previous:current`, marked as in `count.lua`.
--
-- a: 5 the window in microseconds   6 whether the weight is rounded up
local function open(c, a)
  c.due, c.window = 0, a[5]
  local v = call('GET', c.key)
  if not v then return end
  -- None of ours is longer, and one that is might keep the pattern busy for ever.
  local sign, index, previous, current, period =
    match(#v > 99 and '' or v, '^(%-?)(%d+):(%d+):(%d+)@?(%d*)$')
  if not index then error('undecodable value of ' .. c.key, 0) end
  c.found, c.marked, c.index = v, sign == '-', index + 0
  read_period(c, period)
  c.previous, c.current = previous + 0, current + 0
end

-- Which window it is, what was counted in the one before it, and in it. One ahead of now stands.
local function settle(c, a)
  local index = floor(now / a[5])
  if not c.index then return index, 0, 0 end
  if c.index >= index and (c.previous > 0 or c.current > 0) then
    return c.index, c.previous, c.current
  end
  if c.index + 1 == index then return index, c.current, 0 end
  return index, 0, 0
end

local function weigh(c, a)
  local index, previous, current = settle(c, a)
  local overlap = math.min((index + 1) * a[5] - now, a[5])
  local fits, is_charged = fit(c, a, current + weighed(previous, overlap, a[5], a[6]))
  if is_charged then c.next, c.next_previous, c.next_current = index, previous, current + c.due end
  return fits
end

-- When a counter of this window says nothing any more.
local function ends(index, a)
  return index and (index + 2) * a[5]
end

local function write(c, a, is_charged)
  if (is_charged or c.is_postpaid) and c.next then
    local v = format('%d:%d:%d', c.next, c.next_previous, c.next_current)
    put(c, a, v, ends(c.next, a), ends(c.index, a))
  else
    mark(c, a, is_charged, ends(c.index, a))
  end
end
