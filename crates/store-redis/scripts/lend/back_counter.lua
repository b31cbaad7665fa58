-- What was drawn is in the window it was drawn in: the one now or the one before.
local function give_back(c, a, made)
  local index, previous, current = settle(c, a)
  local drawn_in = floor(made / a[5])
  local taken
  if drawn_in == index then
    taken = math.min(a[1], current)
    current = current - taken
  elseif drawn_in + 1 == index then
    taken = math.min(a[1], previous)
    previous = previous - taken
  else
    return
  end
  if previous + current == 0 and not has_period(c, a[4]) then
    call('DEL', c.key)
  else
    put(c, a, format('%d:%d:%d', index, previous, current), ends(index, a), ends(c.index, a))
  end
  return taken
end
