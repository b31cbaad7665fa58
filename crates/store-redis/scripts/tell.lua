-- What a node tells about some counters, and hears about them. A total only grows, so that what is told
-- twice, late or out of order changes nothing.
--
-- The line before this file sets `now`, in microseconds.
--
-- KEYS      for each counter two hashes: of the epoch that is now, and of the one before it. Each has
--           for each node its total, in `level` how much of the limit is used, as
--           `<used> <when, in microseconds>`, and in `resets` how often the counter was reset
-- ARGV      node, then for each counter:
--             total of this epoch
--             total of the epoch before, or '' if that is known to be written
--             '1' if what was told in the epoch before counts on, '0' if it is forgotten
--             how long what is told is of use, in milliseconds
--             how often the counter was reset; a new one resets it
--             how much of the limit the node thinks is used, or '' if it does not know
--             the others' sums that are in that: of this epoch, of the one before ('' if not)
-- returns   for each counter the others' sums and the resets, each of this epoch and of the one before,
--           and, if there is a level, how much was used and how many microseconds ago

local node = ARGV[1]

-- Numbers above 2^46 lose digits in `tostring`.
local function text(number)
  return string.format('%.0f', number)
end

-- What a hash says: the node's own total, the sum of the others', the resets, and the level.
local function read(key)
  local fields = redis.call('HGETALL', key)
  local own, others, resets, used, at = 0, 0, 0, nil, nil
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    if field == node then
      own = tonumber(value)
    elseif field == 'level' then
      used, at = value:match('^(%d+) (%d+)$')
    elseif field == 'resets' then
      resets = tonumber(value)
    else
      others = others + tonumber(value)
    end
  end
  return own, others, resets, tonumber(used), tonumber(at)
end

-- Raises the node's total, and says by how much.
local function raise(key, old, total, ttl)
  if total <= old then
    return 0
  end
  redis.call('HSET', key, node, text(total))
  redis.call('PEXPIRE', key, ttl)
  return total - old
end

local function set_level(key, used, ttl)
  redis.call('HSET', key, 'level', text(used) .. ' ' .. text(now))
  redis.call('PEXPIRE', key, ttl)
end

local replies = {}
for i = 1, #KEYS / 2 do
  local current, before = KEYS[2 * i - 1], KEYS[2 * i]
  local first = 8 * (i - 1) + 2
  local total, late, carries, ttl, heard_resets, view = unpack(ARGV, first, first + 5)
  local own, others, resets, used, at = read(current)
  local own_before, others_before, resets_before, used_before, at_before = read(before)
  carries = carries == '1'
  heard_resets = tonumber(heard_resets)
  if heard_resets > resets then
    resets, used, at = heard_resets, 0, now
    redis.call('HSET', current, 'resets', text(resets))
    set_level(current, used, ttl)
  end
  if carries and not used then
    used, at = used_before, at_before
  end
  local told = raise(current, own, tonumber(total), ttl)
  if late ~= '' then
    told = told + raise(before, own_before, tonumber(late), ttl)
  end
  if told > 0 then
    local level
    if view == '' or heard_resets < resets then
      level = (used or 0) + told
    else
      -- What others told that the node has not heard of, it could not see.
      level = tonumber(view) + math.max(0, others - tonumber(ARGV[first + 6]))
      if carries then
        level = level + math.max(0, others_before - tonumber(ARGV[first + 7]))
      end
    end
    set_level(current, level, ttl)
  end
  replies[i] = { others, others_before, resets, resets_before }
  if used then
    replies[i][5] = used
    replies[i][6] = math.max(0, now - at)
  end
end
return replies
