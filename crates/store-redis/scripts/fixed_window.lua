-- Fixed window. Value: `window:count`, marked as in `count.lua`.
--
-- a: 5 the window in microseconds   6 whether refusals are counted
local function open(c, a)
  c.due, c.window = 0, a[5]
  local v = call('GET', c.key)
  if not v then return end
  -- None of ours is longer, and one that is might keep the pattern busy for ever.
  local sign, index, count, period =
    match(#v > 99 and '' or v, '^(%-?)(%d+):(%d+)@?(%d*)$')
  if not index then error('undecodable value of ' .. c.key, 0) end
  c.found, c.marked, c.index, c.count = v, sign == '-', index + 0, count + 0
  read_period(c, period)
end

-- Which window it is, and what is counted in it. One ahead of now stands.
local function settle(c, a)
  if c.index and c.count > 0 and now < (c.index + 1) * a[5] then return c.index, c.count end
  return floor(now / a[5]), 0
end

local function weigh(c, a)
  local index, count = settle(c, a)
  local fits, is_charged = fit(c, a, count)
  if is_charged then c.next, c.next_count = index, count + c.due end
  if fits or is_charged then return fits end
  if a[6] == 1 and a[1] > 0 then
    c.due = c.due + a[1]
    c.next, c.next_count = index, math.min((c.next_count or count) + a[1], 9007199254740992)
  end
  return false
end

-- When a counter of this window says nothing any more.
local function ends(index, a)
  return index and (index + 1) * a[5]
end

local function write(c, a, is_charged)
  if (is_charged or c.is_postpaid) and c.next then
    put(c, a, format('%d:%d', c.next, c.next_count), ends(c.next, a), ends(c.index, a))
  else
    mark(c, a, is_charged, ends(c.index, a))
  end
end
