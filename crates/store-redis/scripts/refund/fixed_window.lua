local function refund(c, a)
  local index, count = settle(c, a)
  if count <= a[1] and not has_period(c, a[4]) then
    call('DEL', c.key)
  else
    put(c, a, format('%d:%d', index, math.max(count - a[1], 0)), ends(index, a), ends(c.index, a))
  end
end
