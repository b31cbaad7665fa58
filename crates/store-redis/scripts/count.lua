-- What the algorithms that count in plain numbers share: the comparison with the limit.
--
-- a: 1 the cost   2 the limit   3 the most there is room for   4 `soft_for` in microseconds, -1 without one, -2 if the
--    limit is postpaid: then what does not fit is denied, and charged up to the most; the others are the algorithm's own
local tell
-- How long after now a charge is remembered as made.
local later = 0

-- Whether a cost on top of those before fits, and whether it is charged.
local function fit(c, a, used)
  local most, soft_for = a[3], a[4]
  if soft_for == -2 then
    c.is_postpaid = true
    -- What is due is cut to the most, but what the request asks in all is compared whole.
    local asked = (c.asked or 0) + a[1]
    local fits = a[2] > 0 and used + math.max(asked, 1) <= a[2]
    if a[2] > 0 then c.asked, c.due = asked, math.max(math.min(asked, most - used), c.due) end
    if a[1] > 0 then c.refused = not fits end
    return fits, a[1] > 0 and a[2] > 0
  end
  if has_period(c, soft_for) and not is_soft(c, soft_for) then most = a[2] end
  local due = c.due + a[1]
  if used + due > most then
    if a[1] > 0 then note_denied(c, soft_for) end
    return false, false
  end
  c.due = due
  if a[1] > 0 then
    c.refused = false
    if used + due > a[2] then note_soft(c, soft_for) end
  end
  return true, a[1] > 0
end

-- Writes a state of numbers, until `ends` in microseconds or the end of its period. Where that is as it `was`, the
-- expiry that the counter has stands: to leave it is far cheaper than to set it anew.
local function put(c, a, v, ends, was)
  if c.since then v = v .. '@' .. period_text(c.since, c.step) end
  if c.refused then v = '-' .. v end
  if ends == was and not c.since and not c.old_since then
    call('SET', c.key, v, 'KEEPTTL')
  else
    ends = math.max(ends, period_ends(c, a[4]))
    call('SET', c.key, v, 'PXAT', format('%d', math.ceil(ends / 1000) + shift))
  end
end

-- Notes that the last answer was a denial, in a counter that is there. Its state ends at `ends`.
local function mark(c, a, is_charged, ends)
  if not c.found then return end
  if close_period(c, a[4], is_charged) then
    put(c, a, match(c.found, '^%-?([%d:]+)'), ends)
  elseif c.refused and not c.marked then
    call('SET', c.key, '-' .. c.found, 'KEEPTTL')
  end
end
