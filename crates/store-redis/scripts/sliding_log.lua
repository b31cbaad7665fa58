-- Sliding log. Value: a header, then the times of the requests, oldest first, 4 bytes each.
--
-- Header: the newest time and the microseconds of the period of soft admissions (-1: there is none) as doubles;
-- in 4 bytes how many times at the front are forgotten already and, in the highest ten bits, the period's step;
-- and in one whether the last answer was a refusal.
-- A time is in units that the window fits 2^32 of, and keeps its low 32 bits: all are within a window of
-- the newest.
--
-- a: 5 the window in microseconds   6 the unit in microseconds   7 the most entries
--    8 whether refusals are remembered
local HEADER, FORMAT, SPAN = 21, '<ddI4B', 4294967296
-- The weight of the step beside how many times are forgotten.
local STEP = 4194304
-- Up to so many bytes a log is read and written as a whole, which takes the fewest calls.
local SMALL = HEADER + 4 * 256

local function open(c, a)
  local v = call('GETRANGE', c.key, 0, SMALL - 1)
  c.due, c.entries, c.used, c.most, c.wanted, c.window = 0, 0, 0, a[7], {}, a[5]
  if #v == 0 then return end
  local entries = (#v == SMALL and call('STRLEN', c.key) or #v) - HEADER
  if entries < 0 or entries % 4 > 0 then error('undecodable value of ' .. c.key, 0) end
  local since, marked, step
  c.newest, since, c.head, marked = unpack_struct(FORMAT, v)
  step = floor(c.head / STEP)
  c.head = c.head - step * STEP
  c.chunk, c.entries, c.marked, c.found = v, entries / 4, marked == 1, ''
  if c.head > c.entries then error('undecodable value of ' .. c.key, 0) end
  if since >= 0 then set_period(c, since, step) end
end

-- The time of an entry, from 0 for the oldest that is kept.
local function stamp(c, n)
  local at = HEADER + 4 * (c.head + n)
  local low
  if at + 4 <= #c.chunk then
    low = unpack_struct('<I4', c.chunk, at + 1)
  else
    low = unpack_struct('<I4', call('GETRANGE', c.key, at, at + 3))
  end
  return c.newest - (c.newest - low) % SPAN
end

-- Passes over the entries that have left the window.
local function settle(c, a)
  if c.settled then return end
  c.settled = true
  c.head = c.head or 0
  local n = c.entries - c.head
  local function has_left(i) return stamp(c, i) * a[6] + a[5] <= now end
  if n > 0 and has_left(0) then
    -- As a rule few have left: look ahead by doubling steps, then close in.
    local low, high, step = 0, n, 1
    while low + step < n and has_left(low + step) do
      low, step = low + step, step * 2
    end
    high = math.min(low + step, n)
    while high - low > 1 do
      local middle = floor((low + high) / 2)
      if has_left(middle) then low = middle else high = middle end
    end
    c.head, n = c.head + high, n - high
  end
  c.used = n
end

-- Has the reply tell the time of the entry that must leave before a cost fits within `most`.
local function want(c, a, cost, most)
  local n = c.used - (most - cost) - 1
  if a[8] == 1 then n = n + math.min(cost, a[7]) end
  if n >= 0 and n < c.used then c.wanted[#c.wanted + 1] = format(' %d %d', n, stamp(c, n)) end
end

local function weigh(c, a)
  settle(c, a)
  c.most = math.max(c.most, a[7])
  local at = math.ceil((now + later) / a[6])
  if c.entries > 0 and c.newest > at then at = c.newest end
  local cost = c.due + a[1]
  -- A look asks when a cost of 1 fits.
  if a[1] == 0 then
    want(c, a, cost + 1, a[3])
    want(c, a, cost + 1, a[2])
  end
  if a[4] == -2 then
    -- The log keeps the newest, and a cost of 1 fits when the oldest of them leaves.
    local n = math.min(cost, a[7])
    c.is_postpaid = true
    c.due = cost
    if a[1] > 0 then c.next, c.next_n = at, n end
    local fits = c.used + math.max(cost, 1) <= a[2]
    if a[1] > 0 then c.refused = not fits end
    local oldest = c.used + n - a[7]
    if oldest >= 0 and oldest < c.used then
      c.wanted[#c.wanted + 1] = format(' %d %d', oldest, stamp(c, oldest))
    end
    return fits and a[2] > 0
  end
  if fit(c, a, c.used) then
    if a[1] > 0 then c.next, c.next_n = at, math.min(c.due, a[7]) end
    return true
  end
  want(c, a, cost, a[3])
  if a[2] < a[3] then want(c, a, cost, a[2]) end
  if a[8] == 1 and a[1] > 0 then c.denied, c.denied_n = at, math.min(cost, a[7], a[1]) end
  return false
end

-- The state as it is told: how many, the newest, the period of soft admissions, and the entries asked for.
local function tell(c)
  local period = c.old_since and period_text(c.old_since, c.old_step) or '-1'
  if c.used == 0 then return '0 0 ' .. period end
  return format('%d %d %s 0 %d', c.used, c.newest, period, stamp(c, 0)) .. table.concat(c.wanted)
end

local function header(c, newest, head, marked)
  return pack_struct(FORMAT, newest, c.since or -1, head + (c.since and c.step or 0) * STEP, marked)
end

-- When a log with this newest entry, or its period, ends; in milliseconds, as text.
local function ends(c, a, newest)
  local last = math.max(newest * a[6] + a[5], period_ends(c, a[4]))
  return format('%d', math.ceil(last / 1000) + shift)
end

local function put(c, a, added, newest, live)
  local marked = c.refused and 1 or 0
  local first, all = HEADER + 4 * c.head, HEADER + 4 * c.entries
  if c.entries == 0 or all + #added <= SMALL or c.head * 2 > live then
    local kept = ''
    if c.head < c.entries then
      kept = all < SMALL and string.sub(c.chunk, first + 1) or call('GETRANGE', c.key, first, -1)
    end
    call('SET', c.key, header(c, newest, 0, marked) .. kept .. added, 'PXAT', ends(c, a, newest))
  else
    call('APPEND', c.key, added)
    call('SETRANGE', c.key, 0, header(c, newest, c.head, marked))
    call('PEXPIREAT', c.key, ends(c, a, newest))
  end
end

local function write(c, a, is_charged)
  local added, newest, live = '', c.newest, c.used
  local function push(at, n)
    -- The oldest make way. What was added just now is never more than there is room for.
    local forget = math.max(live + n - c.most, 0)
    local of_old = math.min(forget, c.entries - c.head)
    c.head = c.head + of_old
    added = string.sub(added, 4 * (forget - of_old) + 1)
      .. string.rep(pack_struct('<I4', at % SPAN), n)
    live, newest = live - forget + n, at
  end
  c.head = c.head or 0
  if (is_charged or c.is_postpaid) and c.next then push(c.next, c.next_n) end
  if c.denied then push(c.denied, c.denied_n) end
  local is_changed = close_period(c, a[4], is_charged)
  if #added > 0 then
    put(c, a, added, newest, live)
  elseif c.found and is_changed then
    call('SETRANGE', c.key, 0, header(c, newest, c.head, c.refused and 1 or 0))
    call('PEXPIREAT', c.key, ends(c, a, newest))
  elseif c.refused and c.found and not c.marked then
    call('SETRANGE', c.key, HEADER - 1, '\1')
  end
end
