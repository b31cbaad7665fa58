-- Decides on one fixed window and charges it, for the most common of all calls: what `fixed_window.lua` and `one.lua`
-- do together, and cheaper, because it comes before their functions are made. Values, numbers and reply are theirs.
-- They decide on what is rare: limits that may be exceeded, counters that were, denials that are counted, and postpaid limits.
local cost, limit, most, soft_for, window, counts_denials = unpack_struct('<dddddd', numbers)
if limit == most and soft_for == -1 then
  local v, digits, count = call('GET', key)
  -- None of ours is longer.
  if v and #v < 100 then digits, count = match(v, '^%-?(%d+):(%d+)$') end
  local found, index, used = digits and digits + 0, floor(now / window), cost
  -- One ahead of now stands.
  if found and found >= index then index, used = found, count + cost end
  local word = used > limit and '0' or '1'
  if (digits or not v) and (word == '1' or counts_denials == 0) then
    if word == '0' then
      if v and cost > 0 and match(v, '^%d') then call('SET', key, '-' .. v, 'KEEPTTL') end
    elseif cost > 0 then
      if index == found then
        call('SET', key, digits .. format(':%d', used), 'KEEPTTL')
      else
        local ends = math.ceil((index + 1) * window / 1000) + shift
        call('SET', key, format('%d:%d', index, used), 'PXAT', format('%d', ends))
      end
    end
    return word .. time[1] .. '.' .. time[2] .. ' ' .. (v or '')
  end
end
