-- Token bucket and leaky bucket: the state is the instant at which the bucket is whole again.
--
-- Value: that instant in nanoseconds, in decimal. `-` before it: the last answer was a refusal. After it
-- `:` and a rest in 2^-32 ns, and `@` and the period of soft admissions.
-- A span is a pair: whole microseconds, and the rest in 2^-32 ns. Nothing is multiplied, so all is exact.
--
-- a: 1, 2 what is asked   3, 4 the most there is room for   5, 6 the capacity
--    7, 8 the furthest ahead a bucket can be   9 `soft_for` in microseconds, -1 without one,
--    -2 if it is postpaid: then what does not fit is denied, and charged up to the most
--    10 the step of expiry in microseconds   11 the window in microseconds   12, 13 what a cost of 1 takes
local NANO = 4294967296
local MICRO = 1000 * NANO
local tell

local function open(c, a)
  local v = call('GET', c.key)
  c.due, c.due_rest, c.window = 0, 0, a[11]
  if not v then return end
  c.found = v
  local us, ns = match(v, '^(%d+)(%d%d%d)$')
  if us then
    c.us, c.rest, c.plain = us + 0, ns * NANO, true
    return
  end
  local sign, ticks, period
  -- None of ours is longer, and one that is might keep the pattern busy for ever.
  sign, us, ns, ticks, period = match(#v > 99 and '' or v, '^(%-?)(%d+)(%d%d%d):?(%d*)@?(%d*)$')
  if not us then error('undecodable value of ' .. c.key, 0) end
  c.us, c.rest, c.marked = us + 0, ns * NANO + (tonumber(ticks) or 0), sign == '-'
  read_period(c, period)
end

-- Charges a postpaid bucket, which is `after` ahead of now then, but no further than the most.
local function debit(c, a, after, after_rest, takes)
  if a[5] == 0 and a[6] == 0 then
    if takes then c.refused = true end
    return false
  end
  local is_over = after > a[5] or after == a[5] and after_rest > a[6]
  if after > a[3] or after == a[3] and after_rest > a[4] then after, after_rest = a[3], a[4] end
  if takes then
    c.refused, c.next, c.next_rest = is_over, now + after, after_rest
    c.due, c.due_rest = c.due + a[1], c.due_rest + a[2]
    if c.due_rest >= MICRO then c.due, c.due_rest = c.due + 1, c.due_rest - MICRO end
    return not is_over
  end
  if c.due > 0 or c.due_rest > 0 then return not is_over end
  local next, next_rest = after + a[12], after_rest + a[13]
  if next_rest >= MICRO then next, next_rest = next + 1, next_rest - MICRO end
  return next < a[5] or next == a[5] and next_rest <= a[6]
end

local function weigh(c, a)
  local us, rest, clamped = 0, 0, false
  if c.us then
    us, rest = c.us - now, c.rest
    if us < 0 then
      us, rest = 0, 0
    elseif us > a[7] or us == a[7] and rest > a[8] then
      -- Further ahead than any charge can have brought it: it counts as used up.
      us, rest, clamped = a[5], a[6], true
    end
  end
  local most, most_rest = a[3], a[4]
  if has_period(c, a[9]) and not is_soft(c, a[9]) then most, most_rest = a[5], a[6] end
  local due, due_rest = c.due + a[1], c.due_rest + a[2]
  if due_rest >= MICRO then due, due_rest = due + 1, due_rest - MICRO end
  local after, after_rest = us + due, rest + due_rest
  if after_rest >= MICRO then after, after_rest = after + 1, after_rest - MICRO end
  local takes = a[1] > 0 or a[2] > 0
  if a[9] == -2 then
    c.is_postpaid = true
    return debit(c, a, after, after_rest, takes)
  end
  if after > most or after == most and after_rest > most_rest then
    if takes then
      note_denied(c, a[9])
      -- Of a limit of 0, which has no capacity, the state stays as it is.
      if clamped and (us > 0 or rest > 0) then c.clamped, c.clamped_rest = now + us, rest end
    end
    return false
  end
  c.due, c.due_rest = due, due_rest
  if takes then
    c.refused, c.next, c.next_rest = false, now + after, after_rest
    if after > a[5] or after == a[5] and after_rest > a[6] then note_soft(c, a[9]) end
  end
  return true
end

local function put(c, a, us, rest)
  local step = a[10]
  local steps, ns = floor(us / step), floor(rest / NANO)
  local ticks = rest - ns * NANO
  if c.plain and c.us > 0 and not c.refused and not c.since and ticks == 0
    and steps == floor(c.us / step) then
    -- The expiry stands, and to count up is cheaper than to write anew.
    local more = (us - c.us) * 1000 + ns - c.rest / NANO
    if more > -9007199254740992 and more < 9007199254740992 then
      call('INCRBY', c.key, format('%d', more))
      return
    end
  end
  local v = format('%d%03d', us, ns)
  if ticks > 0 then v = v .. format(':%d', ticks) end
  if c.since then v = v .. '@' .. period_text(c.since, c.step) end
  if c.refused then v = '-' .. v end
  local ends = math.max((steps + 1) * step, period_ends(c, a[9]))
  call('SET', c.key, v, 'PXAT', format('%d', math.ceil(ends / 1000) + shift))
end

local function write(c, a, is_charged)
  local is_changed = close_period(c, a[9], is_charged)
  if (is_charged or c.is_postpaid) and c.next then
    put(c, a, c.next, c.next_rest)
  elseif c.clamped then
    put(c, a, c.clamped, c.clamped_rest)
  elseif c.found and is_changed then
    put(c, a, c.us, c.rest)
  elseif c.refused and c.found and not c.marked then
    call('SET', c.key, '-' .. c.found, 'KEEPTTL')
  end
end
