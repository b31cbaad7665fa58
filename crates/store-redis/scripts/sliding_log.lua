-- Sliding log. Value: a header, then the times of the requests, oldest first, 4 bytes each.
--
-- Header: the newest time and since when the limit has been exceeded (-1: it is not) as doubles, how many
-- times at the front are forgotten already in 4 bytes, and in one whether the last answer was a refusal.
-- A time is in units that the window fits 2^32 of, and keeps its low 32 bits: all are within a window of
-- the newest.
--
-- a: 5 the window in microseconds   6 the unit in microseconds   7 the most entries
--    8 whether refusals are remembered
local HEADER, FORMAT, SPAN = 21, '<ddI4B', 4294967296
-- Up to so many bytes a log is read and written as a whole, which takes the fewest calls.
local SMALL = HEADER + 4 * 256

local function open(c, a)
  local v = call('GETRANGE', c.key, 0, SMALL - 1)
  c.due, c.entries, c.used, c.most, c.wanted = 0, 0, 0, a[7], {}
  if #v == 0 then return end
  local entries = (#v == SMALL and call('STRLEN', c.key) or #v) - HEADER
  if entries < 0 or entries % 4 > 0 then error('undecodable value of ' .. c.key, 0) end
  local over, marked
  c.newest, over, c.head, marked = unpack_struct(FORMAT, v)
  c.chunk, c.entries, c.marked, c.found = v, entries / 4, marked == 1, ''
  if c.head > c.entries then error('undecodable value of ' .. c.key, 0) end
  if over >= 0 then c.over, c.was_over = over, over end
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
  if fit(c, a, c.used) then
    if a[1] > 0 then c.next, c.next_n = at, math.min(c.due, a[7]) end
    return true
  end
  want(c, a, cost, a[3])
  if a[2] < a[3] then want(c, a, cost, a[2]) end
  if a[8] == 1 and a[1] > 0 then c.denied, c.denied_n = at, math.min(cost, a[7], a[1]) end
  return false
end

-- The state as it is told: how many, the newest, since when exceeded, and the entries asked for.
local function tell(c)
  if c.used == 0 then return '0' end
  return format('%d %d %d 0 %d', c.used, c.newest, c.was_over or -1, stamp(c, 0))
    .. table.concat(c.wanted)
end

local function put(c, a, over, added, newest, live)
  local ends = math.ceil((newest * a[6] + a[5]) / 1000) + shift
  local marked = c.refused and 1 or 0
  local first, all = HEADER + 4 * c.head, HEADER + 4 * c.entries
  if c.entries == 0 or all + #added <= SMALL or c.head * 2 > live then
    local kept = ''
    if c.head < c.entries then
      kept = all < SMALL and string.sub(c.chunk, first + 1) or call('GETRANGE', c.key, first, -1)
    end
    local header = pack_struct(FORMAT, newest, over or -1, 0, marked)
    call('SET', c.key, header .. kept .. added, 'PXAT', format('%d', ends))
  else
    call('APPEND', c.key, added)
    call('SETRANGE', c.key, 0, pack_struct(FORMAT, newest, over or -1, c.head, marked))
    call('PEXPIREAT', c.key, format('%d', ends))
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
  if is_charged and c.next then push(c.next, c.next_n) end
  if c.denied then push(c.denied, c.denied_n) end
  if #added > 0 then
    local over = c.was_over
    if is_charged then over = c.over end
    put(c, a, over, added, newest, live)
  elseif c.refused and c.found and not c.marked then
    call('SETRANGE', c.key, HEADER - 1, '\1')
  end
end
