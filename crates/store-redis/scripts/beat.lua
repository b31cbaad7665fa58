-- One heartbeat of a node: adds it to the members, stores its demand for some limits, and returns its
-- shares. Plans are made here, once for each epoch of a limit. Only one thing of a plan changes: a node that was
-- alone takes up its part of `absent`.
--
-- The line before this file sets `now`, in microseconds.
--
-- KEYS[1]   sorted set: members, by when they expire
-- KEYS[2]   string: the shortest length of an epoch, as set by the first member
-- KEYS[3..] hash for each limit: `length` of its epochs, `from` when plans may begin, `last` epoch that
--           has a plan, `d<node>` the demand of a node, `s<epoch>` a plan
-- ARGV      node, expiry, pace, most members, number of nodes by which the node divided limits because its
--           previous heartbeat failed or else 0, then for each limit: window, memory, parts, demand
--           (times in microseconds; see `Want` for the meaning)
-- returns   {now, members, time of the node's previous heartbeat or 0, then for each limit {plan now, next
--           plan}}, a plan being {} if there is none, or {starts, ends, parts, share, reserve, members}
--
-- A plan is stored as `parts reserve members absent|<node>=<share>;...`. In an epoch in which nodes were alone
-- `absent` is the parts of those that are not back yet.

local node, expiry, pace = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local most_members, alone_among = tonumber(ARGV[4]), tonumber(ARGV[5])
-- The fewest parts for each member with which a limit is divided.
local least_parts = 4

-- Numbers above 2^46 lose digits in `tostring`.
local function text(number)
  return string.format('%.0f', number)
end

-- Sets how long a key is kept.
local function keep(key, span)
  redis.call('PEXPIRE', key, text(math.ceil(span / 1000)))
end

-- Adds the node to the members, unless there are too many. Returns whether it is a member, and the time of
-- its previous heartbeat.
local function join()
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now))
  local expires = redis.call('ZSCORE', KEYS[1], node)
  if not expires and redis.call('ZCARD', KEYS[1]) >= most_members then
    return false, 0
  end
  redis.call('ZADD', KEYS[1], text(now + expiry), node)
  if redis.call('PTTL', KEYS[1]) < expiry / 1000 then
    keep(KEYS[1], expiry)
  end
  return true, expires and tonumber(expires) - expiry or 0
end

-- The pace of all members. It outlives every plan, because plans of two paces must not meet.
local function settle_pace()
  redis.call('SET', KEYS[2], text(pace), 'NX')
  keep(KEYS[2], 600000000)
  return tonumber(redis.call('GET', KEYS[2]))
end

local is_member, previous = join()
pace = settle_pace()
local members = redis.call('ZRANGE', KEYS[1], 0, -1)
table.sort(members)

-- The length of a limit's epochs: whole windows, no shorter than the pace or the memory of its counters.
-- Longer ones are as good. If shorter ones are in use, because the limit had other numbers, no plan is made
-- until those are over and forgotten.
local function settle_length(key, window, memory)
  local needed = math.ceil(math.max(pace, memory, 1) / window) * window
  local length = tonumber(redis.call('HGET', key, 'length') or '0')
  if length >= needed and length % window == 0 then
    return length
  end
  local last = redis.call('HGET', key, 'last')
  if last then
    local over = (tonumber(last) + 1) * length + needed
    redis.call('DEL', key)
    redis.call('HSET', key, 'from', text(over))
  end
  redis.call('HSET', key, 'length', text(needed))
  return needed
end

-- The smallest reserve of any plan.
local function least_reserve(parts)
  return math.max(1, math.floor(parts / 32))
end

-- Whether a limit is too small for shares, so that all of it is the reserve.
local function is_too_small(parts)
  return parts < #members * least_parts
end

-- The demand of the members for a limit, in their order, and its sum.
local function read_demands(stored)
  local demands, sum = {}, 0
  for place, id in ipairs(members) do
    demands[place] = tonumber(stored['d' .. id] or '0')
    sum = sum + demands[place]
  end
  return demands, sum
end

-- The shares that members should have: what is asked of each or, if that is more than there is, its
-- proportion; a little less, so that what chance adds elsewhere is in the reserve.
local function targets_of(parts, demands, sum)
  local pool, targets = math.max(0, parts - least_reserve(parts)), {}
  for place, demand in ipairs(demands) do
    local part = sum <= pool and demand or math.floor(pool * demand / sum)
    targets[place] = is_too_small(parts) and 0 or part - math.floor(math.sqrt(part))
  end
  return targets
end

-- The reserve, the shares and the absent parts of an epoch in which nodes were alone.
local function divide_evenly(parts, among)
  local shares, reserve = {}, math.min(parts, least_reserve(parts))
  local share = math.floor((parts - reserve) / math.max(#members, among))
  for place = 1, #members do shares[place] = share end
  return reserve, shares, share * math.max(0, among - #members)
end

-- The reserve and the shares of the epoch after a stored plan, of a limit that remembers. No holder has
-- more than it had, but for parts that nobody had: the larger parts of both epochs are no more than the
-- limit together.
local function change(plan, parts, targets, sum)
  local head, listed = string.match(plan, '^([%d ]+)|(.*)$')
  local were, kept, _, absent = string.match(head, '(%d+) (%d+) (%d+) (%d+)')
  were, kept = tonumber(were), tonumber(kept)
  local reserve = math.floor(kept * parts / were)
  local free = parts - math.ceil(kept * parts / were) - math.ceil(tonumber(absent) * parts / were)
  local had = {}
  for id, part in string.gmatch(listed, '(%x+)=(%d+)') do
    had[id] = math.floor(tonumber(part) * parts / were)
    free = free - math.ceil(tonumber(part) * parts / were)
  end
  local least = least_reserve(parts)
  local rounded_off = math.min(math.max(0, least - reserve), math.max(0, free))
  reserve, free = reserve + rounded_off, math.max(0, free) - rounded_off

  local shares, needed, of_reserve = {}, 0, parts
  for place, id in ipairs(members) do
    shares[place] = had[id] or 0
    needed = needed + math.max(0, targets[place] - shares[place])
    of_reserve = of_reserve - targets[place]
  end
  -- More than there is: what idle members hold is missing in the reserve.
  local lacks_reserve = sum > parts and math.max(0, of_reserve - reserve) or 0
  if needed + lacks_reserve > free or is_too_small(parts) then
    for place, target in ipairs(targets) do
      -- A difference that chance explains is not worth the epoch in which nobody has those parts.
      local share = shares[place]
      local is_noise = target > 0 and target + math.floor(math.sqrt(share)) >= share
      shares[place] = is_noise and share or math.min(share, target)
    end
  end
  local missing = 0
  for place, target in ipairs(targets) do
    local need = math.max(0, target - shares[place])
    if need > 0 then
      local grows = math.min(need, math.floor(free * need / needed))
      shares[place] = shares[place] + grows
      free, needed, missing = free - grows, needed - need, missing + need - grows
    end
  end
  -- The reserve is in use as well: of what is not idle it gives up no more than a little at a time, because
  -- nobody has those parts in the next epoch.
  local little, idle = math.max(1, math.floor(parts / 64)), math.max(0, parts - sum)
  local given_up = math.min(missing, math.max(little, idle), math.max(0, reserve - least))
  return reserve - given_up + free, shares
end

-- Drops what no plan will need: the demand of nodes that left, and plans before the last epoch.
local function tidy(key, stored, epoch)
  local alive = {}
  for _, id in ipairs(members) do alive['d' .. id] = true end
  for field in pairs(stored) do
    local kind = string.sub(field, 1, 1)
    local is_gone = kind == 'd' and not alive[field]
    local planned = kind == 's' and tonumber(string.sub(field, 2))
    if is_gone or (planned and planned < epoch - 1) then
      redis.call('HDEL', key, field)
    end
  end
end

-- Makes the plan of an epoch.
local function make(key, epoch, parts, remembers, among)
  local stored, flat = {}, redis.call('HGETALL', key)
  for place = 1, #flat, 2 do stored[flat[place]] = flat[place + 1] end

  local demands, sum = read_demands(stored)
  local before = remembers and stored['s' .. text(epoch - 1)]
  local targets = targets_of(parts, demands, sum)
  local reserve, shares, absent = parts, targets, 0
  if among > 0 then
    reserve, shares, absent = divide_evenly(parts, among)
  elseif before then
    reserve, shares = change(before, parts, targets, sum)
  else
    for _, share in ipairs(shares) do reserve = reserve - share end
  end
  local listed = {}
  for place, id in ipairs(members) do
    listed[place] = id .. '=' .. text(shares[place]) .. ';'
  end
  local head = {text(parts), text(reserve), text(math.max(#members, among)), text(absent)}
  local plan = table.concat(head, ' ') .. '|' .. table.concat(listed)
  redis.call('HSET', key, 's' .. text(epoch), plan, 'last', text(epoch))
  tidy(key, stored, epoch - 1)
  return plan
end

-- Gives a node that was alone its part of a plan that was made before it was back.
local function claim(key, epoch, plan)
  local head, absent, listed = string.match(plan, '^(%d+ %d+ %d+) (%d+)|(.*)$')
  local share = string.match(listed, '=(%d+);')
  if absent == '0' or string.find(listed, node .. '=', 1, true) then
    return plan
  end
  absent = text(tonumber(absent) - tonumber(share))
  plan = head .. ' ' .. absent .. '|' .. listed .. node .. '=' .. share .. ';'
  redis.call('HSET', key, 's' .. text(epoch), plan)
  return plan
end

-- The plan of an epoch, made if it has none and never had one.
local function plan_of(key, epoch, length, parts, remembers, among)
  local plan = redis.call('HGET', key, 's' .. text(epoch))
  if plan and is_member and among > 0 then
    return claim(key, epoch, plan)
  elseif plan or not is_member then
    return plan
  end
  local from, last = unpack(redis.call('HMGET', key, 'from', 'last'))
  local is_early = from and epoch * length < tonumber(from)
  if is_early or (last and epoch <= tonumber(last)) then
    return false
  end
  return make(key, epoch, parts, remembers, among)
end

-- A plan as this node sees it.
local function view(plan, epoch, length)
  if not plan then
    return {}
  end
  local parts, reserve, count = string.match(plan, '^(%d+) (%d+) (%d+) ')
  local share = string.match(plan, node .. '=(%d+);') or '0'
  return {
    epoch * length, (epoch + 1) * length,
    tonumber(parts), tonumber(share), tonumber(reserve), tonumber(count)
  }
end

local result = {now, #members, previous}
for place = 3, #KEYS do
  local key, at = KEYS[place], 6 + (place - 3) * 4
  local window, memory = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local parts, demand = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local length = settle_length(key, window, memory)
  if is_member then
    redis.call('HSET', key, 'd' .. node, text(demand))
  end
  local epoch = math.floor(now / length)
  local current = plan_of(key, epoch, length, parts, memory > 0, alone_among)
  local next_plan = redis.call('HGET', key, 's' .. text(epoch + 1))
  -- While nodes are not back yet, the next plan waits for them as long as it can.
  local is_waiting = current and not string.find(current, ' 0|', 1, true)
  local ahead = is_waiting and math.floor(pace / 2) or 2 * pace
  if not next_plan and now >= (epoch + 1) * length - ahead then
    next_plan = plan_of(key, epoch + 1, length, parts, memory > 0, 0)
  end
  keep(key, 3 * length + expiry)
  result[#result + 1] = {view(current, epoch, length), view(next_plan, epoch + 1, length)}
end
return result
