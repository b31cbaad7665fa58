local function refund(c, a)
  local index, previous, current = settle(c, a)
  -- From the window now, then from the one before.
  local from_current = math.min(a[1], current)
  current, previous = current - from_current, math.max(previous - (a[1] - from_current), 0)
  if previous + current == 0 and not has_period(c, a[4]) then
    call('DEL', c.key)
  else
    put(c, a, format('%d:%d:%d', index, previous, current), ends(index, a), ends(c.index, a))
  end
end
