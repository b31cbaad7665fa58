-- What was drawn is in the sub-window it was drawn in, as long as that is remembered.
local function give_back(c, a, made)
  if c.is_stale then return end
  local index = index_of(floor(made / a[5]))
  local back = math.min(a[1], tonumber(call('HGET', c.key, index)) or 0)
  if back == 0 then return end
  call('HINCRBY', c.key, index, format('%d', -back))
  if call('HINCRBY', c.key, 't', format('%d', -back)) == 0 and not has_period(c, a[4]) then
    call('DEL', c.key)
  else
    put_period(c)
  end
  return back
end
