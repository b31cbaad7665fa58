-- What the algorithms that count in plain numbers share: the comparison with the limit.
--
-- a: 1 the cost   2 the limit   3 the most there is room for   4 how long it may be exceeded in
--    microseconds, -1 for ever; the others are the algorithm's own
local tell
-- How long after now a charge is remembered as made.
local later = 0

local function fit(c, a, used)
  -- Whole again, it is over nothing.
  if used == 0 then c.over, c.was_over = nil, nil end
  local most = a[3]
  if c.over and a[4] >= 0 and now >= c.over + a[4] then most = a[2] end
  local due = c.due + a[1]
  if used + due > most then
    if a[1] > 0 then c.refused = true end
    return false
  end
  c.due = due
  if a[1] > 0 then
    c.refused = false
    if a[4] < 0 or used + due <= a[2] then
      c.over = nil
    else
      c.over = c.over or now
    end
  end
  return true
end

-- Writes a state of numbers, until `ends` in microseconds. Where that is as it `was`, the expiry that the counter
-- has stands: to leave it is far cheaper than to set it anew.
local function put(c, v, over, ends, was)
  if over then v = v .. format('@%d', over) end
  if c.refused then v = '-' .. v end
  if ends == was then
    call('SET', c.key, v, 'KEEPTTL')
  else
    call('SET', c.key, v, 'PXAT', format('%d', math.ceil(ends / 1000) + shift))
  end
end

-- Notes that the last answer was a refusal, in a counter that is there.
local function mark(c)
  if c.refused and c.found and not c.marked then
    call('SET', c.key, '-' .. c.found, 'KEEPTTL')
  end
end
