local function refund(c, a)
  local index, missing = settle(c, a)
  if missing <= a[1] and not has_period(c, a[4]) then
    call('DEL', c.key)
  else
    refill(c, a, index, math.max(missing - a[1], 0))
  end
end
