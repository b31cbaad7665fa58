-- Sliding counter over sub-windows. A hash: `n` the newest sub-window, `t` the sum of all counts, `o` the
-- period of soft admissions, `r` if the last answer was a refusal, and a count for each sub-window
-- under its index.
--
-- a: 5 the sub-window in microseconds   6 whether the weight is rounded up   7 how many there are
--    8 the window in microseconds
local CHUNK = 32

local function index_of(n) return format('%d', n) end

-- A whole number that can be counted up from; nil for anything else, on which a loop might never end.
local function whole(text)
  local n = tonumber(text)
  return n and n >= 0 and n < 9007199254740992 and n == floor(n) and n or nil
end

-- The counts of the sub-windows from one on, a number of them.
local function counts(c, from, n)
  local fields = {}
  for i = 1, n do fields[i] = index_of(from + i - 1) end
  return call('HMGET', c.key, unpack(fields))
end

local function open(c, a)
  c.due, c.wanted, c.window = 0, {}, a[8]
  local newest, parts = floor(now / a[5]), a[7]
  local v = call('HMGET', c.key, 'n', 't', 'o', 'r', index_of(newest), index_of(newest - parts))
  c.newest, c.total, c.current, c.oldest = newest, 0, 0, 0
  if not v[1] then return end
  local was, total = whole(v[1]), whole(v[2])
  if not was or not total then error('undecodable value of ' .. c.key, 0) end
  c.found, c.marked = '', v[4]
  read_period(c, v[3])
  if total == 0 or newest - was > parts then
    c.is_stale = true
    return
  end
  c.total, c.current, c.oldest = total, tonumber(v[5]) or 0, tonumber(v[6]) or 0
  if was > newest then
    -- The clock stepped back: what is ahead of it stands.
    c.newest = was
    c.current = tonumber(call('HGET', c.key, index_of(was))) or 0
    c.oldest = tonumber(call('HGET', c.key, index_of(was - parts))) or 0
  elseif was < newest then
    c.leaving = {}
    for i, count in ipairs(counts(c, was - parts, newest - was)) do
      if count then
        c.total = c.total - count
        c.leaving[#c.leaving + 1] = index_of(was - parts + i - 1)
      end
    end
  end
end

-- Has the reply tell a count.
local function want(c, index, count)
  if count > 0 then c.wanted[#c.wanted + 1] = format(' %d %d', index, count) end
end

-- Has the reply tell the newest count that is not 0: until that has left the limit is not whole again.
local function want_newest(c, a)
  local age = 1
  while age <= a[7] do
    local n = math.min(CHUNK, a[7] - age + 1)
    local values = counts(c, c.newest - age - n + 1, n)
    for i = n, 1, -1 do
      local count = tonumber(values[i]) or 0
      if count > 0 then return want(c, c.newest - age - n + i, count) end
    end
    age = age + n
  end
end

-- Has the reply tell the oldest counts, as many as must leave before `room` is enough, and one more: of
-- the last that leaves not all may have to.
local function want_oldest(c, a, room)
  local whole, index, is_last = c.total, c.newest - a[7], false
  while index <= c.newest do
    local n = math.min(CHUNK, c.newest - index + 1)
    for _, value in ipairs(counts(c, index, n)) do
      local count = tonumber(value) or 0
      want(c, index, count)
      if is_last then return end
      whole, index = whole - count, index + 1
      is_last = whole <= room
    end
  end
end

local function weigh(c, a)
  local overlap = math.min((c.newest + 1) * a[5] - now, a[5])
  local used = c.total - c.oldest + weighed(c.oldest, overlap, a[5], a[6])
  local cost = c.due + a[1]
  local fits, is_charged = fit(c, a, used)
  -- Of a debit that its bound cuts to nothing, nothing is written.
  if is_charged and c.due > 0 then c.added = c.due else c.is_looked = true end
  if c.is_postpaid then
    -- When a cost of 1 fits, with what was just charged.
    if not fits and c.total > 0 then want_oldest(c, a, math.max(a[2] - 1 - c.due, 0)) end
    return fits
  end
  -- A look asks when a cost of 1 fits.
  local is_full = a[1] == 0 and used + cost >= a[2]
  if c.total > 0 and (is_full or not fits) then
    local room = a[2] - cost
    if room < 0 then room = a[3] - cost end
    if is_full and room > 0 then room = room - 1 end
    if room >= 0 then want_oldest(c, a, room) end
  end
  return fits
end

-- The state as it is told: the newest sub-window, the sum, the period of soft admissions, and counts.
local function tell(c, a, is_charged)
  local period = c.old_since and period_text(c.old_since, c.old_step) or '-1'
  if c.total == 0 then return '0 0 ' .. period end
  if c.current == 0 and (c.is_looked or not is_charged) then want_newest(c, a) end
  local known = format('%d %d %s', c.newest, c.total, period)
  if c.current > 0 then known = known .. format(' %d %d', c.newest, c.current) end
  if c.oldest > 0 then known = known .. format(' %d %d', c.newest - a[7], c.oldest) end
  return known .. table.concat(c.wanted)
end

local function put_period(c)
  if c.since then
    call('HSET', c.key, 'o', period_text(c.since, c.step))
  elseif c.old_since then
    call('HDEL', c.key, 'o')
  end
end

local function put(c, a, added)
  if c.is_stale then call('DEL', c.key) end
  if c.leaving and c.leaving[1] then call('HDEL', c.key, unpack(c.leaving)) end
  call('HSET', c.key, 'n', index_of(c.newest), 't', index_of(c.total + added),
    index_of(c.newest), index_of(c.current + added))
  put_period(c)
  if c.refused then call('HSET', c.key, 'r', 1) elseif c.marked then call('HDEL', c.key, 'r') end
  local ends = math.max((c.newest + a[7] + 1) * a[5], period_ends(c, a[4]))
  call('PEXPIREAT', c.key, format('%d', math.ceil(ends / 1000) + shift))
end

local function write(c, a, is_charged)
  local is_changed = close_period(c, a[4], is_charged)
  if (is_charged or c.is_postpaid) and c.added then
    put(c, a, c.added)
  elseif c.found then
    if c.refused and not c.marked then call('HSET', c.key, 'r', 1) end
    if is_changed then
      put_period(c)
      -- The counts last as long as before.
      call('PEXPIREAT', c.key, format('%d', math.ceil(period_ends(c, a[4]) / 1000) + shift), 'GT')
    end
  end
end
