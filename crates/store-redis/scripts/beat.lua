-- One heartbeat of a node: it is there, and wants some of some limits. Says who else is there, and
-- what plans give it. Plans are made here, once for each epoch of a limit, and never changed.
--
-- The line before this file sets `now`, in microseconds.
--
-- KEYS[1]   sorted set: members, by when they expire
-- KEYS[2]   string: how long epochs are at the least, as the first member said
-- KEYS[3..] hash for each limit: `length` of its epochs, `from` when plans may begin, `last` epoch that
--           has a plan, `d<node>` what a node wants, `p<epoch>` a plan
-- ARGV      node, expiry, pace, most members, then for each limit: window, memory, parts, demand
--           (times in microseconds; see `Want` for the meaning)
-- returns   {now, members, time of the node's previous heartbeat or 0, then for each limit {plan now, next plan}}, a plan being {} if there is none,
--           or {starts, ends, parts, share, reserve, least}
--
-- A plan is stored as `parts reserve least given|<node>=<share>/<given>;...`. What a node or the reserve
-- is given it has at once if its counters remember nothing; else it has no more than it was given in the
-- epoch before as well, for whoever had the rest may have spent it just before the edge.

local node, expiry, pace = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local most_members = tonumber(ARGV[4])

-- Numbers above 2^46 lose digits in `tostring`.
local function text(number)
  return string.format('%.0f', number)
end

-- How long what is stored is of use to anybody, in milliseconds.
local function keep(key, span)
  redis.call('PEXPIRE', key, text(math.ceil(span / 1000)))
end

-- Counts the node in, unless there are too many. Returns whether it is a member, and the time of its
-- previous heartbeat.
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

-- The pace of all. It outlives every plan, for plans of two paces must not meet.
local function settle_pace()
  redis.call('SET', KEYS[2], text(pace), 'NX')
  keep(KEYS[2], 600000000)
  return tonumber(redis.call('GET', KEYS[2]))
end

local is_member, previous = join()
pace = settle_pace()
local members = redis.call('ZRANGE', KEYS[1], 0, -1)
table.sort(members)

-- How long the epochs of a limit are: whole windows, no shorter than the pace or than counters remember.
-- Longer ones are as good. Where shorter ones are in use, since the limit had other numbers, nothing is
-- planned until those are over and forgotten.
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

-- Gives each member what it wants, and no more than others who want more (max-min fair); what is left
-- then, to all alike. Everybody gets at least `floor`, of which there must be enough in the `pool`.
local function divide(pool, floor, demands)
  local order, given = {}, {}
  for place, id in ipairs(members) do
    local want = math.max(floor, tonumber(demands['d' .. id] or '0'))
    order[place] = {id = id, want = want}
  end
  table.sort(order, function(a, b)
    if a.want == b.want then return a.id < b.id end
    return a.want < b.want
  end)
  local count = #order
  for place, member in ipairs(order) do
    given[member.id] = math.min(member.want, math.floor(pool / (count - place + 1)))
    pool = pool - given[member.id]
  end
  local each, extra = math.floor(pool / count), pool % count
  for place, member in ipairs(order) do
    given[member.id] = given[member.id] + each + (place <= extra and 1 or 0)
  end
  return given
end

-- What was given in a stored plan, by node, the reserve's under ''; in parts of so many.
local function given_in(plan, parts)
  local head, shares = string.match(plan, '^([%d ]+)|(.*)$')
  local were, _, _, reserve = string.match(head, '(%d+) (%d+) (%d+) (%d+)')
  local given = {[''] = math.floor(tonumber(reserve) * parts / tonumber(were))}
  for id, part in string.gmatch(shares, '(%x+)=%d+/(%d+)') do
    given[id] = math.floor(tonumber(part) * parts / tonumber(were))
  end
  return given
end

-- Drops what no plan will need: what the gone wanted, and plans before the last epoch.
local function tidy(key, stored, epoch)
  local alive = {}
  for _, id in ipairs(members) do alive['d' .. id] = true end
  for field in pairs(stored) do
    local kind = string.sub(field, 1, 1)
    local is_gone = kind == 'd' and not alive[field]
    local planned = kind == 'p' and tonumber(string.sub(field, 2))
    if is_gone or (planned and planned < epoch - 1) then
      redis.call('HDEL', key, field)
    end
  end
end

-- Makes the plan of an epoch, of a limit of so many parts.
local function make(key, epoch, parts, remembers)
  local stored, flat = {}, redis.call('HGETALL', key)
  for place = 1, #flat, 2 do stored[flat[place]] = flat[place + 1] end

  local count = #members
  local reserve, least = math.max(1, math.floor(parts / 32)), 0
  local given = {}
  if parts < count + reserve then
    reserve = parts
  else
    given = divide(parts - reserve, math.max(1, math.floor(parts / (32 * count))), stored)
    least = parts
    for _, part in pairs(given) do least = math.min(least, part) end
  end

  local before = remembers and stored['p' .. text(epoch - 1)]
  before = before and given_in(before, parts)
  local function now_has(id, part)
    return before and math.min(part, before[id] or 0) or part
  end
  local shares = {}
  for _, id in ipairs(members) do
    local part = given[id] or 0
    shares[#shares + 1] = id .. '=' .. text(now_has(id, part)) .. '/' .. text(part) .. ';'
  end
  local head = {text(parts), text(now_has('', reserve)), text(least), text(reserve)}
  local plan = table.concat(head, ' ') .. '|' .. table.concat(shares)
  redis.call('HSET', key, 'p' .. text(epoch), plan, 'last', text(epoch))
  tidy(key, stored, epoch - 1)
  return plan
end

-- The plan of an epoch, made if it has none and never had one.
local function plan_of(key, epoch, length, parts, remembers)
  local plan = redis.call('HGET', key, 'p' .. text(epoch))
  if plan or not is_member then
    return plan
  end
  local from, last = unpack(redis.call('HMGET', key, 'from', 'last'))
  local is_early = from and epoch * length < tonumber(from)
  if is_early or (last and epoch <= tonumber(last)) then
    return false
  end
  return make(key, epoch, parts, remembers)
end

local function told(plan, epoch, length)
  if not plan then
    return {}
  end
  local parts, reserve, least = string.match(plan, '^(%d+) (%d+) (%d+) ')
  local share = string.match(plan, node .. '=(%d+)/') or '0'
  return {
    epoch * length, (epoch + 1) * length,
    tonumber(parts), tonumber(share), tonumber(reserve), tonumber(least)
  }
end

local result = {now, #members, previous}
for place = 3, #KEYS do
  local key, at = KEYS[place], 5 + (place - 3) * 4
  local window, memory = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local parts, demand = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local length = settle_length(key, window, memory)
  if is_member then
    redis.call('HSET', key, 'd' .. node, text(demand))
  end
  local epoch = math.floor(now / length)
  local current = plan_of(key, epoch, length, parts, memory > 0)
  local next_plan = redis.call('HGET', key, 'p' .. text(epoch + 1))
  if not next_plan and now >= (epoch + 1) * length - 2 * pace then
    next_plan = plan_of(key, epoch + 1, length, parts, memory > 0)
  end
  keep(key, 3 * length + expiry)
  result[#result + 1] = {told(current, epoch, length), told(next_plan, epoch + 1, length)}
end
return result
