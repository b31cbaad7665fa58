-- Decides on one bucket and charges it: what `bucket.lua` and `one.lua` do together, for the most common of all
-- calls, with nothing set up that is not needed. Values, numbers and reply are theirs; of a limit that nothing
-- may exceed the numbers are only what is asked, the capacity (pairs), and the step of expiry. They decide on limits
-- with `soft_for` and on postpaid ones.
local asked, asked_rest, most, most_rest, capacity, capacity_rest, bound, bound_rest, soft_for, step
if #numbers == 40 then
  asked, asked_rest, most, most_rest, step = unpack_struct('<ddddd', numbers)
  capacity, capacity_rest, bound, bound_rest, soft_for = most, most_rest, most, most_rest, -1
else
  asked, asked_rest, most, most_rest, capacity, capacity_rest, bound, bound_rest, soft_for, step =
    unpack_struct('<dddddddddd', numbers)
end
if soft_for == -1 then
  local v = call('GET', key)
  local us, rest, found, found_rest, is_plain, is_marked, is_clamped = 0, 0
  if v then
    -- A value of this century without any mark, cut after its microseconds.
    if #v == 19 then
      found, found_rest = tonumber(string.sub(v, 1, 16)), tonumber(string.sub(v, 17))
      is_plain = found and found > 0 and found_rest
    end
    if is_plain then
      found_rest = found_rest * 4294967296
    else
      -- None of ours is longer, and one that is might keep the pattern busy for ever.
      local sign, digits, ns, ticks =
        match(#v > 99 and '' or v, '^(%-?)(%d+)(%d%d%d):?(%d*)@?%d*$')
      if not digits then error('undecodable value of ' .. key, 0) end
      found, found_rest = digits + 0, ns * 4294967296 + (tonumber(ticks) or 0)
      is_marked = sign == '-'
    end
    us, rest = found - now, found_rest
    if us < 0 then
      us, rest = 0, 0
    elseif us > bound or us == bound and rest > bound_rest then
      us, rest, is_clamped = capacity, capacity_rest, capacity > 0 or capacity_rest > 0
    end
  end
  local after, after_rest = us + asked, rest + asked_rest
  if after_rest >= 4294967296000 then after, after_rest = after + 1, after_rest - 4294967296000 end
  local takes, refused, word = asked > 0 or asked_rest > 0, false, '1'
  if after > most or after == most and after_rest > most_rest then
    refused, takes = takes, takes and is_clamped
    if refused and not takes and v and not is_marked then call('SET', key, '-' .. v, 'KEEPTTL') end
    after, after_rest = us, rest
    word = '0'
  end
  if takes then
    after = after + now
    local ns, steps = after_rest / 4294967296, floor(after / step)
    local is_whole = ns % 1 == 0
    -- The expiry stands while the step does, and to count up is cheaper than to write anew.
    local more = is_plain and (after - found) * 1000 + ns - found_rest / 4294967296
    if more and is_whole and not refused and steps == floor(found / step)
      and more < 9007199254740992 and more > -9007199254740992 then
      call('INCRBY', key, format('%d', more))
    else
      local value = format('%d%03d', after, ns)
      if not is_whole then value = value .. format(':%d', after_rest % 4294967296) end
      if refused then value = '-' .. value end
      call('SET', key, value, 'PXAT', format('%d', (steps + 1) * step / 1000 + shift))
    end
  end
  return word .. time[1] .. '.' .. time[2] .. ' ' .. (v or '')
end
